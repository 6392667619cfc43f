const test = require("node:test");
const assert = require("node:assert");
const { isEmpty } = require("./solution.js");

test("example 1", () => {
  assert.strictEqual(isEmpty([]), true);
});

test("example 2", () => {
  assert.strictEqual(isEmpty([1, 2]), false);
});
