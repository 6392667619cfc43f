'use strict';
// The reporter of the trusted side: one result per top-level test, with the reason of its first failing part.

const state = require('./node_state.cjs');

module.exports = async function* results(source) {
  let inner = null;
  for await (const { type, data } of source) {
    if (type !== 'test:pass' && type !== 'test:fail') continue;
    const failed = type === 'test:fail';
    const parts = failed && data.details.error.failureType === 'subtestsFailed';
    const skipped = data.skip !== undefined || data.todo !== undefined;
    let verdict = failed && !parts ? state.verdict(data.details.error) : null;
    if (!failed && skipped) verdict = { status: 'missing', kind: '', message: 'skipped' };
    if (data.nesting > 0) {
      inner = inner || verdict;
      continue;
    }
    const file = state.registered[state.results.length] || '';
    const outcome = verdict || inner || { status: failed ? 'error' : 'passed', kind: '', message: '' };
    state.results.push({ id: `${file}::${data.name}`, seconds: data.details.duration_ms / 1000, ...outcome });
    inner = null;
  }
  state.finish();
  yield '';
};
