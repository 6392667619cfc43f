const test = require("node:test");
const assert = require("node:assert");
const { addOne } = require("./solution.js");

test("empty", () => {
  assert.deepStrictEqual(addOne([]), []);
});

test("zeros", () => {
  assert.deepStrictEqual(addOne([0, 0]), [1, 1]);
});

test("negatives", () => {
  assert.deepStrictEqual(addOne([-1, -2]), [0, -1]);
});

test("keeps order", () => {
  assert.deepStrictEqual(addOne([3, 1, 2]), [4, 2, 3]);
});
