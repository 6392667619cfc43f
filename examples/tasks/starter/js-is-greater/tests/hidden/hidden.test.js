const test = require("node:test");
const assert = require("node:assert");
const { isGreater } = require("./solution.js");

test("equal", () => {
  assert.strictEqual(isGreater(4, 4), false);
});

test("negatives", () => {
  assert.strictEqual(isGreater(-1, -2), true);
  assert.strictEqual(isGreater(-2, -1), false);
});

test("zero", () => {
  assert.strictEqual(isGreater(0, -1), true);
});

test("floats", () => {
  assert.strictEqual(isGreater(1.5, 1.25), true);
});
