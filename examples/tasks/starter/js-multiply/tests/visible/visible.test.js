const test = require("node:test");
const assert = require("node:assert");
const { multiply } = require("./solution.js");

test("example 1", () => {
  assert.strictEqual(multiply(3, 4), 12);
});

test("example 2", () => {
  assert.strictEqual(multiply(-2, 5), -10);
});
