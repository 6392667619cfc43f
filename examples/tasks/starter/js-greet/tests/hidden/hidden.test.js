const test = require("node:test");
const assert = require("node:assert");
const { greet } = require("./solution.js");

test("one letter", () => {
  assert.strictEqual(greet("X"), "Hello, X!");
});

test("two names", () => {
  assert.strictEqual(greet("Ann Lee"), "Hello, Ann Lee!");
});

test("lower case", () => {
  assert.strictEqual(greet("tim"), "Hello, tim!");
});

test("empty", () => {
  assert.strictEqual(greet(""), "Hello, !");
});
