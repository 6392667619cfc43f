const test = require("node:test");
const assert = require("node:assert");
const { addOne } = require("./solution.js");

test("example 1", () => {
  assert.deepStrictEqual(addOne([1, 2, 3]), [2, 3, 4]);
});

test("example 2", () => {
  assert.deepStrictEqual(addOne([9]), [10]);
});
