const test = require("node:test");
const assert = require("node:assert");
const { keepEven } = require("./solution.js");

test("example 1", () => {
  assert.deepStrictEqual(keepEven([1, 2, 3, 4]), [2, 4]);
});

test("example 2", () => {
  assert.deepStrictEqual(keepEven([1, 3]), []);
});
