const test = require("node:test");
const assert = require("node:assert");
const { isEmpty } = require("./solution.js");

test("empty", () => {
  assert.strictEqual(isEmpty([]), true);
});

test("one item", () => {
  assert.strictEqual(isEmpty([1]), false);
});

test("zero inside", () => {
  assert.strictEqual(isEmpty([0]), false);
});

test("longer", () => {
  assert.strictEqual(isEmpty([1, 2, 3, 4]), false);
});
