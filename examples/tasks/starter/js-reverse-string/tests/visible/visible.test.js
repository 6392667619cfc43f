const test = require("node:test");
const assert = require("node:assert");
const { reverseString } = require("./solution.js");

test("example 1", () => {
  assert.strictEqual(reverseString("hello"), "olleh");
});

test("example 2", () => {
  assert.strictEqual(reverseString("ab"), "ba");
});
