'use strict';
// The candidate's side: loads the candidate's modules, calls them on request, answers with plain data.
//
//     node node_candidate.cjs READ_FD WRITE_FD      (working directory: the workspace)
//
// Nothing here is trusted: this process runs the candidate's code and holds no test, expected value, plan or
// private descriptor.

const path = require('node:path');
const { pathToFileURL } = require('node:url');
const pipe = require('./node_pipe.cjs');
const values = require('./node_values.cjs');

const [READ, WRITE] = process.argv.slice(-2).map(Number);
const modules = new Map();
const objects = [];
const places = new Map();

// What stands for a function or an object that is not plain data.
function handle(value) {
  let place = places.get(value);
  if (place === undefined) {
    place = objects.push(value) - 1;
    places.set(value, place);
  }
  const isFunction = typeof value === 'function';
  const isClass = isFunction && /^class\b/.test(Function.prototype.toString.call(value));
  const isError = isClass && value.prototype instanceof Error;
  const name = isFunction ? value.name : (value.constructor && value.constructor.name) || 'Object';
  return { place, kind: isError ? 'error' : isClass ? 'class' : isFunction ? 'function' : 'object', name };
}

function encode(value) {
  return values.encode(value, handle);
}

function decode(data) {
  return values.decode(data, (reference) => ('callback' in reference ? callback(reference.callback) : find(reference.place)));
}

function find(place) {
  if (!Array.isArray(place)) return objects[place];
  const [module, ...names] = place;
  return names.reduce((found, name) => found[name], modules.get(module));
}

function callback(number) {
  return (...args) => {
    pipe.send(WRITE, 'C', { callback: number, args: encode(args) });
    const [, reply] = pipe.receive(READ);
    if ('error' in reply) throw new Error(reply.error.message);
    return decode(reply.ok);
  };
}

async function load(file) {
  if (modules.has(file)) return modules.get(file);
  const full = path.resolve(file);
  let exported;
  try {
    exported = require(full);
  } catch (error) {
    if (error.code !== 'ERR_REQUIRE_ESM' && !/import statement|Unexpected token 'export'/.test(error.message)) throw error;
    exported = { ...(await import(pathToFileURL(full).href)) };
  }
  modules.set(file, exported);
  remember(exported, [file]);
  if (exported !== null && typeof exported === 'object') {
    for (const [name, value] of Object.entries(exported)) remember(value, [file, name]);
  }
  return exported;
}

// Exports cross by name, an object of functions too, so that the tests can take them apart.
function exportsOf(exported) {
  if (exported === null || typeof exported !== 'object' || Array.isArray(exported)) return encode(exported);
  return { t: 'o', v: Object.entries(exported).map((pair) => pair.map(encode)), bare: false };
}

function remember(value, place) {
  const nameable = typeof value === 'function' || (value !== null && typeof value === 'object');
  if (nameable && !places.has(value)) places.set(value, place);
}

const operations = {
  load: async ({ file }) => ({ value: await load(file), force: (exported) => exportsOf(exported) }),
  get: async ({ target, name }) => ({ value: find(target)[name] }),
  set: async ({ target, name, value }) => { find(target)[name] = decode(value); return {}; },
  iterate: async ({ target }) => ({ value: find(target)[Symbol.iterator](), force: (items) => ({ t: 'x', v: handle(items) }) }),
  call: async ({ target, name, args, construct }) => {
    const given = decode(args);
    const owner = find(target);
    const called = name === undefined ? owner : owner[name];
    const value = construct ? new called(...given) : Reflect.apply(called, name === undefined ? undefined : owner, given);
    return { value, given, before: args };
  },
};

async function answer(request) {
  for (const file of request.files || []) await load(file);
  const { value, given, before, force } = await operations[request.op](request);
  const promised = value instanceof Promise;
  let settled = value;
  try {
    if (promised) settled = await value;
  } catch (error) {
    return { error: describe(error), promised };
  }
  const ok = force ? force(settled) : encode(settled);
  const after = given === undefined ? undefined : encode(given);
  const changed = after !== undefined && JSON.stringify(after) !== JSON.stringify(before);
  return { ok, promised, args: changed ? after : undefined };
}

function describe(error) {
  if (!(error instanceof Error)) return { thrown: encode(error) };
  const names = [];
  for (let kind = error; kind && names.length < 10; kind = Object.getPrototypeOf(kind)) {
    if (kind.constructor && kind.constructor.name) names.push(kind.constructor.name);
  }
  const extra = Object.entries(error).filter(([, value]) => value === null || typeof value !== 'object' && typeof value !== 'function');
  return { names: [...new Set(names)], name: String(error.name), message: String(error.message), extra: encode(Object.fromEntries(extra)) };
}

async function serve() {
  for (let frame = pipe.receive(READ); frame !== null; frame = pipe.receive(READ)) {
    let reply;
    try {
      reply = await answer(frame[1]);
    } catch (error) {
      reply = { error: describe(error) };
    }
    pipe.send(WRITE, 'A', reply);
  }
  process.exit(0);
}

serve();
