const test = require("node:test");
const assert = require("node:assert");
const { toUpper } = require("./solution.js");

test("example 1", () => {
  assert.strictEqual(toUpper("hello"), "HELLO");
});

test("example 2", () => {
  assert.strictEqual(toUpper("aBc"), "ABC");
});
