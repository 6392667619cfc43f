const test = require("node:test");
const assert = require("node:assert");
const { isAdult } = require("./solution.js");

test("exactly 18", () => {
  assert.strictEqual(isAdult(18), true);
});

test("seventeen", () => {
  assert.strictEqual(isAdult(17), false);
});

test("zero", () => {
  assert.strictEqual(isAdult(0), false);
});

test("old", () => {
  assert.strictEqual(isAdult(99), true);
});
