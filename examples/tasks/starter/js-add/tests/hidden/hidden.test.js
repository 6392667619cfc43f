const test = require("node:test");
const assert = require("node:assert");
const { add } = require("./solution.js");

test("zeros", () => {
  assert.strictEqual(add(0, 0), 0);
});

test("negatives", () => {
  assert.strictEqual(add(-2, -3), -5);
});

test("large", () => {
  assert.strictEqual(add(1000000, 1), 1000001);
});

test("floats", () => {
  assert.strictEqual(add(0.5, 0.25), 0.75);
});
