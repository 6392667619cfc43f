'use strict';
// What the test process and its reporter share: the plan, the candidate, results so far.

const pipe = require('./node_pipe.cjs');
const { explain } = require('./node_reporter.cjs');
const { CandidateLost, Remote } = require('./node_remote.cjs');

const [READ, WRITE] = process.argv.slice(-2).map(Number);

const state = {
  plan: pipe.receive(READ)[1],
  remote: new Remote(READ, WRITE),
  loading: null, // the test file whose top level is running
  registered: [], // files of top-level tests, in their order
  broken: {}, // file -> verdict of a file that did not load
  results: [],
  done: false,

  // Kind and message of what a test threw.
  verdict(error) {
    const cause = error && error.code === 'ERR_TEST_FAILURE' && error.cause !== undefined ? error.cause : error;
    const message = explain(error);
    if (cause instanceof CandidateLost) return { status: cause.timedOut ? 'failed' : 'error', kind: cause.timedOut ? 'timeout' : 'exception', message };
    if (cause instanceof SyntaxError && cause.fromCandidate) return { status: 'error', kind: 'syntax', message };
    if (cause && cause.code === 'ERR_ASSERTION' && !cause.fromCandidate) return { status: 'failed', kind: 'assertion', message };
    return { status: 'error', kind: 'exception', message };
  },

  finish() {
    if (state.done) return;
    state.done = true;
    pipe.send(WRITE, 'D', { results: state.results, broken: state.broken });
  },
};

module.exports = state;
