const test = require("node:test");
const assert = require("node:assert");
const { sumArray } = require("./solution.js");

test("example 1", () => {
  assert.strictEqual(sumArray([1, 2, 3]), 6);
});

test("example 2", () => {
  assert.strictEqual(sumArray([10, -4]), 6);
});
