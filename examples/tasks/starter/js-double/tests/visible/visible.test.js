const test = require("node:test");
const assert = require("node:assert");
const { double } = require("./solution.js");

test("example 1", () => {
  assert.strictEqual(double(6), 12);
});

test("example 2", () => {
  assert.strictEqual(double(-4), -8);
});
