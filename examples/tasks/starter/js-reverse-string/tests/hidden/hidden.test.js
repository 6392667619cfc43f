const test = require("node:test");
const assert = require("node:assert");
const { reverseString } = require("./solution.js");

test("empty", () => {
  assert.strictEqual(reverseString(""), "");
});

test("one letter", () => {
  assert.strictEqual(reverseString("a"), "a");
});

test("spaces", () => {
  assert.strictEqual(reverseString("a b"), "b a");
});

test("palindrome", () => {
  assert.strictEqual(reverseString("level"), "level");
});
