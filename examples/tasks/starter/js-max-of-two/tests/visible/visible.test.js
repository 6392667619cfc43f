const test = require("node:test");
const assert = require("node:assert");
const { maxOfTwo } = require("./solution.js");

test("example 1", () => {
  assert.strictEqual(maxOfTwo(3, 8), 8);
});

test("example 2", () => {
  assert.strictEqual(maxOfTwo(5, 2), 5);
});
