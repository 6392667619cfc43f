const test = require("node:test");
const assert = require("node:assert");
const { countPositive } = require("./solution.js");

test("example 1", () => {
  assert.strictEqual(countPositive([1, -2, 3]), 2);
});

test("example 2", () => {
  assert.strictEqual(countPositive([-1]), 0);
});
