const test = require("node:test");
const assert = require("node:assert");
const { isGreater } = require("./solution.js");

test("example 1", () => {
  assert.strictEqual(isGreater(5, 3), true);
});

test("example 2", () => {
  assert.strictEqual(isGreater(2, 7), false);
});
