const test = require("node:test");
const assert = require("node:assert");
const { isDivisible } = require("./solution.js");

test("by one", () => {
  assert.strictEqual(isDivisible(7, 1), true);
});

test("by itself", () => {
  assert.strictEqual(isDivisible(9, 9), true);
});

test("zero", () => {
  assert.strictEqual(isDivisible(0, 4), true);
});

test("larger divisor", () => {
  assert.strictEqual(isDivisible(3, 6), false);
});
