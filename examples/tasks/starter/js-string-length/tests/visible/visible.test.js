const test = require("node:test");
const assert = require("node:assert");
const { stringLength } = require("./solution.js");

test("example 1", () => {
  assert.strictEqual(stringLength("hello"), 5);
});

test("example 2", () => {
  assert.strictEqual(stringLength("a"), 1);
});
