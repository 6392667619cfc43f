const test = require("node:test");
const assert = require("node:assert");
const { firstCharacter } = require("./solution.js");

test("digit", () => {
  assert.strictEqual(firstCharacter("1abc"), "1");
});

test("space", () => {
  assert.strictEqual(firstCharacter(" x"), " ");
});

test("upper", () => {
  assert.strictEqual(firstCharacter("Zoo"), "Z");
});

test("two", () => {
  assert.strictEqual(firstCharacter("ba"), "b");
});
