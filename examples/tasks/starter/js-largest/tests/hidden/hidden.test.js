const test = require("node:test");
const assert = require("node:assert");
const { largest } = require("./solution.js");

test("first is largest", () => {
  assert.strictEqual(largest([9, 2, 3]), 9);
});

test("last is largest", () => {
  assert.strictEqual(largest([1, 2, 7]), 7);
});

test("negatives", () => {
  assert.strictEqual(largest([-5, -2, -9]), -2);
});

test("repeated", () => {
  assert.strictEqual(largest([4, 4, 4]), 4);
});
