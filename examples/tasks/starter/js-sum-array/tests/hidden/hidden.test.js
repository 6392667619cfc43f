const test = require("node:test");
const assert = require("node:assert");
const { sumArray } = require("./solution.js");

test("empty", () => {
  assert.strictEqual(sumArray([]), 0);
});

test("one number", () => {
  assert.strictEqual(sumArray([7]), 7);
});

test("negatives", () => {
  assert.strictEqual(sumArray([-1, -2]), -3);
});

test("longer", () => {
  assert.strictEqual(sumArray([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]), 55);
});
