'use strict';
// The trusted side's view of a JavaScript candidate: synchronous requests, and proxies for what is not plain data.
// Nothing that the candidate sends is compared by the candidate's code: handles have no `valueOf`, no symbols but
// iteration, and none of the questions that an array or a string would answer about an expected value.

const pipe = require('./node_pipe.cjs');
const values = require('./node_values.cjs');

const QUESTIONS = new Set(['includes', 'indexOf', 'lastIndexOf', 'has', 'every', 'some', 'find', 'startsWith',
  'endsWith', 'match', 'matches', 'equals', 'localeCompare', 'test']);
const NEVER = new Set(['valueOf', 'toJSON', 'then', 'constructor', 'inspect', '__proto__']);
const place = Symbol('place');

class CandidateLost extends Error {}

class Remote {
  constructor(readFd, writeFd) {
    this.readFd = readFd;
    this.writeFd = writeFd;
    this.files = [];
    this.callbacks = [];
    this.errors = new Map();
    this.classes = false;
    this.lost = null;
  }

  // Start a test: what was lost in the last one is no longer held against it.
  begin() {
    this.lost = null;
    this.callbacks = [];
  }

  load(file) {
    const exported = this.request({ op: 'load', file });
    if (!this.files.includes(file)) this.files.push(file);
    return exported;
  }

  call(target, args, more = {}) {
    const sent = this.encode(args);
    const reply = this.exchange({ op: 'call', target, args: sent, ...more });
    if (reply.args !== undefined) values.mirror(args, this.decode(reply.args));
    return this.result(reply);
  }

  request(fields) {
    return this.result(this.exchange(fields));
  }

  result(reply) {
    const settle = () => {
      if (reply.error !== undefined) throw this.error(reply.error);
      return this.decode(reply.ok);
    };
    if (!reply.promised) return settle();
    return new Promise((resolve) => { resolve(settle()); });
  }

  exchange(fields) {
    if (this.lost) throw this.lost;
    pipe.send(this.writeFd, 'R', { ...fields, files: this.files });
    for (;;) {
      const [kind, reply] = pipe.receive(this.readFd);
      if (kind === 'A') return reply;
      if (kind === 'C') this.callBack(reply);
      else {
        this.lost = Object.assign(new CandidateLost(reply), { timedOut: kind === 'T' });
        throw this.lost;
      }
    }
  }

  callBack({ callback, args }) {
    let reply;
    try {
      reply = { ok: this.encode(this.callbacks[callback](...this.decode(args))) };
    } catch (error) {
      reply = { error: { message: String(error && error.message) } };
    }
    pipe.send(this.writeFd, 'R', reply);
  }

  encode(value) {
    return values.encode(value, (item) => {
      if (item[place] !== undefined) return { place: item[place] };
      if (typeof item !== 'function') throw new values.ValueError(`${item.constructor && item.constructor.name} is not plain data`);
      return { callback: this.callbacks.push(item) - 1 };
    });
  }

  decode(data) {
    return values.decode(data, (reference) => this.handle(reference));
  }

  handle(reference) {
    if ('callback' in reference) return this.callbacks[reference.callback];
    if (reference.kind === 'error') return this.errorClass(String(reference.name));
    this.classes = this.classes || reference.kind === 'class';
    const target = reference.kind === 'object' ? {} : function handle() {};
    return new Proxy(target, this.traps(reference.place, reference.kind !== 'object'));
  }

  traps(target, callable) {
    return {
      apply: (_, self, args) => this.call(target, args),
      construct: (_, args) => this.call(target, args, { construct: true }),
      get: (mine, name) => this.property(target, name, callable, mine),
      set: (_, name, value) => { this.request({ op: 'set', target, name, value: this.encode(value) }); return true; },
    };
  }

  property(target, name, callable, mine) {
    if (name === place) return target;
    if (name === Symbol.iterator) return () => this.request({ op: 'iterate', target });
    if (typeof name === 'symbol' || NEVER.has(name)) return undefined;
    if (callable && name in mine) return mine[name];
    if (name === 'toString' && !this.classes) return undefined;
    const value = this.request({ op: 'get', target, name });
    if (typeof value !== 'function') return value;
    return (...args) => {
      if (args.length > 0 && QUESTIONS.has(name) && !this.classes) throw new TypeError(`the candidate's ${name} is not plain data`);
      return this.call(target, args, { name });
    };
  }

  errorClass(name) {
    if (!this.errors.has(name)) {
      this.errors.set(name, { [name]: class extends Error {} }[name]);
    }
    return this.errors.get(name);
  }

  error(described) {
    if ('thrown' in described) return this.decode(described.thrown);
    const known = described.names.find((name) => this.errors.has(name));
    const builtin = described.names.find((name) => /Error$/.test(name) && typeof globalThis[name] === 'function') || 'Error';
    const Kind = known ? this.errors.get(known) : globalThis[builtin];
    const error = new Kind(described.message);
    if (error.name !== described.name) error.name = described.name;
    Object.assign(error, this.decode(described.extra));
    Object.defineProperty(error, 'fromCandidate', { value: true });
    return error;
  }
}

module.exports = { Remote, CandidateLost };
