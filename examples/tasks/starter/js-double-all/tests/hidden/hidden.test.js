const test = require("node:test");
const assert = require("node:assert");
const { doubleAll } = require("./solution.js");

test("empty", () => {
  assert.deepStrictEqual(doubleAll([]), []);
});

test("zeros", () => {
  assert.deepStrictEqual(doubleAll([0, 0]), [0, 0]);
});

test("negatives", () => {
  assert.deepStrictEqual(doubleAll([-1, -2]), [-2, -4]);
});

test("keeps order", () => {
  assert.deepStrictEqual(doubleAll([3, 1, 2]), [6, 2, 4]);
});
