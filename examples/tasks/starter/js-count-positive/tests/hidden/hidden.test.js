const test = require("node:test");
const assert = require("node:assert");
const { countPositive } = require("./solution.js");

test("empty", () => {
  assert.strictEqual(countPositive([]), 0);
});

test("zero is not positive", () => {
  assert.strictEqual(countPositive([0, 0]), 0);
});

test("all positive", () => {
  assert.strictEqual(countPositive([1, 2, 3, 4]), 4);
});

test("mixed", () => {
  assert.strictEqual(countPositive([-1, 0, 1]), 1);
});
