'use strict';
// Plain JavaScript data <-> JSON with tags, for pipes whose other end is not trusted. Decoding builds only data
// and what the given hook makes of handles; nothing that arrives is ever evaluated.

const MAX_DEPTH = 150;

class ValueError extends Error {}

// Encode `value`; `hook(value)` gives what stands for functions and objects that are not plain data.
function encode(value, hook, depth = MAX_DEPTH) {
  if (depth <= 0) throw new ValueError(`nested deeper than ${MAX_DEPTH} levels`);
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return value;
  if (typeof value === 'number') {
    return Number.isFinite(value) && !Object.is(value, -0) ? value : { t: 'n', v: Object.is(value, -0) ? '-0' : String(value) };
  }
  if (value === undefined) return { t: 'u' };
  if (typeof value === 'bigint') return { t: 'i', v: value.toString(16) };
  const each = (items) => Array.from(items, (item) => encode(item, hook, depth - 1));
  if (Array.isArray(value)) return each(value);
  if (value instanceof Map) return { t: 'm', v: Array.from(value, each) };
  if (value instanceof Set) return { t: 's', v: each(value) };
  if (value instanceof Date) return { t: 'd', v: encode(value.getTime(), hook, depth - 1) };
  if (value instanceof Uint8Array) return { t: 'b', v: Buffer.from(value).toString('base64'), buffer: Buffer.isBuffer(value) };
  if (typeof value === 'object') {
    const base = Object.getPrototypeOf(value);
    const plain = base === null || base === Object.prototype;
    // an object with methods keeps its `this` only where it lives
    if (plain && !Object.values(value).some((item) => typeof item === 'function')) {
      return { t: 'o', v: Object.entries(value).map(each), bare: base === null };
    }
  }
  return { t: 'x', v: hook(value) };
}

// The value encoded in `data`; `hook(v)` gives what a handle becomes.
function decode(data, hook, depth = MAX_DEPTH) {
  if (depth <= 0) throw new ValueError(`nested deeper than ${MAX_DEPTH} levels`);
  if (data === null || typeof data !== 'object') return data;
  const each = (items) => items.map((item) => decode(item, hook, depth - 1));
  if (Array.isArray(data)) return each(data);
  switch (data.t) {
    case 'n': return Number(data.v);
    case 'u': return undefined;
    case 'i': return data.v.startsWith('-') ? -BigInt(`0x${data.v.slice(1)}`) : BigInt(`0x${data.v}`);
    case 'm': return new Map(data.v.map(each));
    case 's': return new Set(each(data.v));
    case 'd': return new Date(decode(data.v, hook, depth - 1));
    case 'b': return data.buffer ? Buffer.from(data.v, 'base64') : Uint8Array.from(Buffer.from(data.v, 'base64'));
    case 'o': return fill(data.bare ? Object.create(null) : {}, data.v.map(each));
    case 'x': return hook(data.v);
    default: throw new ValueError('malformed value');
  }
}

function fill(target, entries) {
  for (const [key, value] of entries) {
    Object.defineProperty(target, key, { value, writable: true, enumerable: true, configurable: true });
  }
  return target;
}

// Make `mine` equal to `theirs` in place: a call of the candidate changed its argument.
function mirror(mine, theirs) {
  if (Array.isArray(mine) && Array.isArray(theirs)) {
    const kept = theirs.map((item, index) => settle(mine[index], item));
    mine.length = 0;
    mine.push(...kept);
  } else if (mine instanceof Map && theirs instanceof Map) {
    const kept = Array.from(theirs, ([key, item]) => [key, settle(mine.get(key), item)]);
    mine.clear();
    for (const [key, item] of kept) mine.set(key, item);
  } else if (mine instanceof Set && theirs instanceof Set) {
    mine.clear();
    for (const item of theirs) mine.add(item);
  } else {
    const kept = Object.entries(theirs).map(([key, item]) => [key, settle(mine[key], item)]);
    for (const key of Object.keys(mine)) delete mine[key];
    fill(mine, kept);
  }
}

function settle(old, now) {
  if (typeof old === 'function') return old;
  const container = (value) => value !== null && typeof value === 'object' && !(value instanceof Date);
  if (!container(old) || !container(now) || Object.getPrototypeOf(old) !== Object.getPrototypeOf(now)) return now;
  mirror(old, now);
  return old;
}

module.exports = { encode, decode, mirror, ValueError };
