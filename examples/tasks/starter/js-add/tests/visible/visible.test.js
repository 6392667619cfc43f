const test = require("node:test");
const assert = require("node:assert");
const { add } = require("./solution.js");

test("example 1", () => {
  assert.strictEqual(add(2, 3), 5);
});

test("example 2", () => {
  assert.strictEqual(add(10, -4), 6);
});
