const test = require("node:test");
const assert = require("node:assert");
const { stringLength } = require("./solution.js");

test("empty", () => {
  assert.strictEqual(stringLength(""), 0);
});

test("spaces", () => {
  assert.strictEqual(stringLength("a b"), 3);
});

test("digits", () => {
  assert.strictEqual(stringLength("1234"), 4);
});

test("longer", () => {
  assert.strictEqual(stringLength("programming"), 11);
});
