const test = require("node:test");
const assert = require("node:assert");
const { isAdult } = require("./solution.js");

test("example 1", () => {
  assert.strictEqual(isAdult(20), true);
});

test("example 2", () => {
  assert.strictEqual(isAdult(10), false);
});
