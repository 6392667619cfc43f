'use strict';
// A reporter for node's test runner with few words: how many failed, the first failures with the values they saw.

const path = require('node:path');
const util = require('node:util');

const SHOWN = 3;
const VALUE_CHARS = 120;

function cut(text, limit = VALUE_CHARS) {
  return text.length <= limit ? text : `${text.slice(0, limit - 20)} …[${text.length} chars]`;
}

function show(value) {
  try {
    return cut(util.inspect(value, { breakLength: Infinity, depth: 4, maxArrayLength: 30 }));
  } catch (error) {
    return '<value that cannot be shown>';
  }
}

// `name: message` of what a test threw, with both sides of a comparison.
function explain(error) {
  const cause = error && error.cause !== undefined && error.code === 'ERR_TEST_FAILURE' ? error.cause : error;
  if (cause === null || typeof cause !== 'object') return show(cause);
  if (cause.code === 'ERR_ASSERTION') {
    const [first] = String(cause.message).split('\n');
    if (!cause.generatedMessage) return cut(`${first}: got ${show(cause.actual)}, expected ${show(cause.expected)}`, 300);
    if (cause.operator === 'throws' || cause.operator === 'rejects') return cut(first, 300);
    return `got ${show(cause.actual)}, expected ${show(cause.expected)} (${cause.operator})`;
  }
  return cut(`${cause.name || 'Error'}: ${cause.message}${place(cause)}`, 300);
}

// ` at solution.js line 3`: the innermost frame inside the workspace.
function place(error) {
  const here = process.cwd() + path.sep;
  const lines = String(error.stack || '').split('\n');
  const found = lines.map((line) => line.replace('file://', '').match(/\(?(\/[^():]+):(\d+)(?::\d+)?\)?$/));
  const frame = found.find((match) => match && match[1].startsWith(here));
  return frame ? ` at ${path.relative(here, frame[1])} line ${frame[2]}` : '';
}

// Full names of finished tests: a suite's own event comes after those of its tests.
class Names {
  constructor() { this.open = []; }

  finish(event) {
    const done = this.open.filter((item) => item.nesting > event.nesting);
    for (const item of done) item.path.unshift(event.name);
    this.open = this.open.filter((item) => !done.includes(item));
    const mine = { nesting: event.nesting, path: [event.name] };
    this.open.push(mine, ...done.map((item) => ({ ...item, nesting: event.nesting })));
    return mine;
  }
}

async function* report(source) {
  const names = new Names();
  const failures = [];
  let ran = 0;
  for await (const { type, data } of source) {
    if (type !== 'test:pass' && type !== 'test:fail') continue;
    const name = names.finish(data);
    if (data.details && data.details.type === 'suite') continue;
    if (type === 'test:fail' && data.details.error.failureType === 'subtestsFailed') continue;
    ran += 1;
    if (type === 'test:fail') failures.push({ name, reason: explain(data.details.error) });
  }
  yield summary(ran, failures);
}

function summary(ran, failures) {
  if (ran === 0) {
    process.exitCode = 2;
    return 'no tests found\n';
  }
  if (failures.length === 0) return ran === 1 ? 'the test passed\n' : `all ${ran} tests passed\n`;
  const lines = [`${failures.length} of ${ran} tests failed`];
  if (failures.length > 1 && new Set(failures.map((item) => item.reason)).size === 1) {
    lines.push(`every one: ${failures[0].reason}`);
  } else {
    for (const { name, reason } of failures.slice(0, SHOWN)) lines.push(`${name.path.join(' > ')}: ${reason}`);
    if (failures.length > SHOWN) lines.push(`… and ${failures.length - SHOWN} more`);
  }
  return `${lines.join('\n')}\n`;
}

module.exports = report;
module.exports.explain = explain;
