const test = require("node:test");
const assert = require("node:assert");
const { isPositive } = require("./solution.js");

test("zero is not positive", () => {
  assert.strictEqual(isPositive(0), false);
});

test("one", () => {
  assert.strictEqual(isPositive(1), true);
});

test("minus one", () => {
  assert.strictEqual(isPositive(-1), false);
});

test("floats", () => {
  assert.strictEqual(isPositive(0.5), true);
});
