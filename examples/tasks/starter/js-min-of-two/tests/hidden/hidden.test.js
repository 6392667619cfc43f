const test = require("node:test");
const assert = require("node:assert");
const { minOfTwo } = require("./solution.js");

test("equal", () => {
  assert.strictEqual(minOfTwo(4, 4), 4);
});

test("negatives", () => {
  assert.strictEqual(minOfTwo(-3, -7), -7);
});

test("mixed", () => {
  assert.strictEqual(minOfTwo(-1, 1), -1);
});

test("zero", () => {
  assert.strictEqual(minOfTwo(0, 5), 0);
});
