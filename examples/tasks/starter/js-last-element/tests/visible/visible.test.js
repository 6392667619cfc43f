const test = require("node:test");
const assert = require("node:assert");
const { last } = require("./solution.js");

test("example 1", () => {
  assert.strictEqual(last([1, 2, 3]), 3);
});

test("example 2", () => {
  assert.strictEqual(last(["a", "b"]), "b");
});
