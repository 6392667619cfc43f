const test = require("node:test");
const assert = require("node:assert");
const { firstCharacter } = require("./solution.js");

test("example 1", () => {
  assert.strictEqual(firstCharacter("hello"), "h");
});

test("example 2", () => {
  assert.strictEqual(firstCharacter("a"), "a");
});
