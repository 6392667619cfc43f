const test = require("node:test");
const assert = require("node:assert");
const { isDivisible } = require("./solution.js");

test("example 1", () => {
  assert.strictEqual(isDivisible(10, 5), true);
});

test("example 2", () => {
  assert.strictEqual(isDivisible(10, 3), false);
});
