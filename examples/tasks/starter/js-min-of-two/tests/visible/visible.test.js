const test = require("node:test");
const assert = require("node:assert");
const { minOfTwo } = require("./solution.js");

test("example 1", () => {
  assert.strictEqual(minOfTwo(3, 8), 3);
});

test("example 2", () => {
  assert.strictEqual(minOfTwo(5, 2), 2);
});
