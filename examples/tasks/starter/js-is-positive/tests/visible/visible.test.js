const test = require("node:test");
const assert = require("node:assert");
const { isPositive } = require("./solution.js");

test("example 1", () => {
  assert.strictEqual(isPositive(5), true);
});

test("example 2", () => {
  assert.strictEqual(isPositive(-2), false);
});
