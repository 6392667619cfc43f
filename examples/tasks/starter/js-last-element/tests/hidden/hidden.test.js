const test = require("node:test");
const assert = require("node:assert");
const { last } = require("./solution.js");

test("one item", () => {
  assert.strictEqual(last([9]), 9);
});

test("zero last", () => {
  assert.strictEqual(last([5, 0]), 0);
});

test("repeated", () => {
  assert.strictEqual(last([1, 2, 1]), 1);
});

test("longer", () => {
  assert.strictEqual(last([8, 7, 6, 5, 4]), 4);
});
