const test = require("node:test");
const assert = require("node:assert");
const { average } = require("./solution.js");

test("example 1", () => {
  assert.strictEqual(average(4, 6), 5);
});

test("example 2", () => {
  assert.strictEqual(average(1, 2), 1.5);
});
