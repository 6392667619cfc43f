const test = require("node:test");
const assert = require("node:assert");
const { isEven } = require("./solution.js");

test("example 1", () => {
  assert.strictEqual(isEven(4), true);
});

test("example 2", () => {
  assert.strictEqual(isEven(7), false);
});
