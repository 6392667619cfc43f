const test = require("node:test");
const assert = require("node:assert");
const { average } = require("./solution.js");

test("zeros", () => {
  assert.strictEqual(average(0, 0), 0);
});

test("same", () => {
  assert.strictEqual(average(7, 7), 7);
});

test("opposite", () => {
  assert.strictEqual(average(-5, 5), 0);
});

test("negatives", () => {
  assert.strictEqual(average(-2, -4), -3);
});
