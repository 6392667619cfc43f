'use strict';
// Runs visible tests with node's own test runner; `node_reporter.cjs` prints the short report for the policy.
//
//     node --test-reporter=node_reporter.cjs --test-reporter-destination=stdout node_visible.cjs TEST_FILE...
//
// Tests and candidate share this process: the result informs the policy and earns nothing. Exit status: 0 all
// passed, 1 any failed, 2 nothing to run.

const path = require('node:path');
const test = require('node:test');
const { pathToFileURL } = require('node:url');

async function load(files) {
  for (const file of files) {
    try {
      await import(pathToFileURL(path.resolve(file)).href);
    } catch (error) {
      test.test(`loading ${file}`, () => { throw error; });
    }
  }
}

load(process.argv.slice(2));
