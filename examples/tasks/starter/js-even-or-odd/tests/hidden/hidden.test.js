const test = require("node:test");
const assert = require("node:assert");
const { evenOrOdd } = require("./solution.js");

test("zero", () => {
  assert.strictEqual(evenOrOdd(0), "even");
});

test("one and two", () => {
  assert.strictEqual(evenOrOdd(1), "odd");
  assert.strictEqual(evenOrOdd(2), "even");
});

test("large", () => {
  assert.strictEqual(evenOrOdd(123456), "even");
  assert.strictEqual(evenOrOdd(123457), "odd");
});

test("negative", () => {
  assert.strictEqual(evenOrOdd(-2), "even");
  assert.strictEqual(evenOrOdd(-1), "odd");
});
