const test = require("node:test");
const assert = require("node:assert");
const { toUpper } = require("./solution.js");

test("empty", () => {
  assert.strictEqual(toUpper(""), "");
});

test("already upper", () => {
  assert.strictEqual(toUpper("OK"), "OK");
});

test("digits", () => {
  assert.strictEqual(toUpper("a1b2"), "A1B2");
});

test("spaces", () => {
  assert.strictEqual(toUpper("two words"), "TWO WORDS");
});
