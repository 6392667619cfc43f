const test = require("node:test");
const assert = require("node:assert");
const { square } = require("./solution.js");

test("example 1", () => {
  assert.strictEqual(square(4), 16);
});

test("example 2", () => {
  assert.strictEqual(square(-3), 9);
});
