const test = require("node:test");
const assert = require("node:assert");
const { double } = require("./solution.js");

test("zero", () => {
  assert.strictEqual(double(0), 0);
});

test("one", () => {
  assert.strictEqual(double(1), 2);
});

test("large", () => {
  assert.strictEqual(double(5000), 10000);
});

test("floats", () => {
  assert.strictEqual(double(1.5), 3);
});
