const test = require("node:test");
const assert = require("node:assert");
const { doubleAll } = require("./solution.js");

test("example 1", () => {
  assert.deepStrictEqual(doubleAll([1, 2, 3]), [2, 4, 6]);
});

test("example 2", () => {
  assert.deepStrictEqual(doubleAll([5]), [10]);
});
