const test = require("node:test");
const assert = require("node:assert");
const { multiply } = require("./solution.js");

test("by zero", () => {
  assert.strictEqual(multiply(0, 9), 0);
});

test("by one", () => {
  assert.strictEqual(multiply(1, 8), 8);
});

test("negatives", () => {
  assert.strictEqual(multiply(-3, -3), 9);
});

test("floats", () => {
  assert.strictEqual(multiply(0.5, 4), 2);
});
