const test = require("node:test");
const assert = require("node:assert");
const { largest } = require("./solution.js");

test("example 1", () => {
  assert.strictEqual(largest([3, 8, 5]), 8);
});

test("example 2", () => {
  assert.strictEqual(largest([1]), 1);
});
