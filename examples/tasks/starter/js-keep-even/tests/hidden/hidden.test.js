const test = require("node:test");
const assert = require("node:assert");
const { keepEven } = require("./solution.js");

test("empty", () => {
  assert.deepStrictEqual(keepEven([]), []);
});

test("zero", () => {
  assert.deepStrictEqual(keepEven([0, 1]), [0]);
});

test("negatives", () => {
  assert.deepStrictEqual(keepEven([-2, -1]), [-2]);
});

test("order and repeats", () => {
  assert.deepStrictEqual(keepEven([4, 2, 4]), [4, 2, 4]);
});
