const test = require("node:test");
const assert = require("node:assert");
const { evenOrOdd } = require("./solution.js");

test("example 1", () => {
  assert.strictEqual(evenOrOdd(4), "even");
});

test("example 2", () => {
  assert.strictEqual(evenOrOdd(7), "odd");
});
