'use strict';
// The trusted side of a JavaScript grading: runs hidden tests, which exist only in memory, with node's test runner.
// Started by `node_hidden.py` with `--test-reporter=node_results.cjs`; modules of the candidate are proxies.
//
//     node --test-reporter=node_results.cjs node_tests.cjs READ_FD WRITE_FD

const Module = require('node:module');
const path = require('node:path');
const test = require('node:test');
const state = require('./node_state.cjs');

const ENDINGS = ['', '.js', '.cjs', '.mjs', '.json', '/index.js'];
const IMPORT = /^import\s+(?:(\w+)|\*\s+as\s+(\w+)|(\w+)?\s*,?\s*\{([^}]*)\})\s+from\s+(['"][^'"]+['"]);?/gm;

// A test file's own `require`: candidate modules, helpers from memory, node's builtins; nothing from the disk.
function requireFrom(file) {
  return (request) => {
    if (request === 'node:test') return guarded;
    if (request.startsWith('.')) return local(path.posix.join(path.posix.dirname(file), request), request);
    if (!Module.builtinModules.includes(request.replace(/^node:/, ''))) throw new Error(`hidden tests cannot use ${request}`);
    return require(request);
  };
}

function local(base, request) {
  for (const name of ENDINGS.map((ending) => base + ending)) {
    if (name in state.plan.modules) return state.remote.load(name);
    if (name in state.plan.files) return helper(name);
  }
  throw new Error(`no module ${request} in the task`);
}

const helpers = new Map();
function helper(file) {
  if (!helpers.has(file)) helpers.set(file, run(file));
  return helpers.get(file);
}

function run(file) {
  const source = state.plan.files[file];
  if (file.endsWith('.json')) return JSON.parse(source);
  const module = new Module(path.resolve(file));
  module.filename = path.resolve(file);
  module.require = requireFrom(file);
  module._compile(commonjs(source), module.filename);
  return module.exports;
}

// Static imports of an ES module as `require` calls, line for line.
function commonjs(source) {
  return source.replace(IMPORT, (_, whole, space, first, names, from) => {
    const parts = [];
    if (whole || space) parts.push(`const ${whole || space} = require(${from});`);
    if (first) parts.push(`const ${first} = require(${from});`);
    if (names) parts.push(`const {${names.replace(/\bas\b/g, ':')}} = require(${from});`);
    return parts.join(' ');
  });
}

// A test whose candidate was lost has failed, whatever its own code caught.
function watched(body) {
  return async (context) => {
    state.remote.begin();
    await (body.length > 1 ? new Promise((resolve, reject) => { body(context, (error) => (error ? reject(error) : resolve())); }) : body(context));
    if (state.remote.lost) throw state.remote.lost;
  };
}

function guard(original, body) {
  const guardedTest = (...args) => {
    if (state.loading !== null) state.registered.push(state.loading);
    return original(...args.map((item) => (typeof item === 'function' ? body(item) : item)));
  };
  for (const variant of ['skip', 'todo', 'only']) guardedTest[variant] = (...args) => {
    if (state.loading !== null) state.registered.push(state.loading);
    return original[variant](...args);
  };
  return guardedTest;
}

const inside = (body) => (...args) => {
  const outer = state.loading;
  state.loading = null;
  try { return body(...args); } finally { state.loading = outer; }
};
const guarded = Object.assign(guard(test.test, watched), {
  test: guard(test.test, watched),
  it: guard(test.it, watched),
  describe: guard(test.describe, inside),
  suite: guard(test.describe, inside),
  before: test.before, after: test.after, beforeEach: test.beforeEach, afterEach: test.afterEach, mock: test.mock,
});

function main() {
  for (const file of state.plan.test_files) {
    state.loading = file;
    try {
      run(file);
    } catch (error) {
      state.broken[file] = state.verdict(error);
    }
    state.loading = null;
  }
  process.on('exit', () => state.finish());
}

main();
