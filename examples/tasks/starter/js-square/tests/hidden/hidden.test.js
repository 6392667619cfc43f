const test = require("node:test");
const assert = require("node:assert");
const { square } = require("./solution.js");

test("zero", () => {
  assert.strictEqual(square(0), 0);
});

test("one", () => {
  assert.strictEqual(square(1), 1);
});

test("large", () => {
  assert.strictEqual(square(100), 10000);
});

test("floats", () => {
  assert.strictEqual(square(0.5), 0.25);
});
