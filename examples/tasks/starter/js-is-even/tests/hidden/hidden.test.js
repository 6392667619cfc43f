const test = require("node:test");
const assert = require("node:assert");
const { isEven } = require("./solution.js");

test("zero", () => {
  assert.strictEqual(isEven(0), true);
});

test("one and two", () => {
  assert.strictEqual(isEven(1), false);
  assert.strictEqual(isEven(2), true);
});

test("large", () => {
  assert.strictEqual(isEven(1000000), true);
  assert.strictEqual(isEven(999999), false);
});

test("negative", () => {
  assert.strictEqual(isEven(-8), true);
  assert.strictEqual(isEven(-3), false);
});
