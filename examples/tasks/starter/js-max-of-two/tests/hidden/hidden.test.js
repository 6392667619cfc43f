const test = require("node:test");
const assert = require("node:assert");
const { maxOfTwo } = require("./solution.js");

test("equal", () => {
  assert.strictEqual(maxOfTwo(4, 4), 4);
});

test("negatives", () => {
  assert.strictEqual(maxOfTwo(-3, -7), -3);
});

test("mixed", () => {
  assert.strictEqual(maxOfTwo(-1, 1), 1);
});

test("zero", () => {
  assert.strictEqual(maxOfTwo(0, -5), 0);
});
