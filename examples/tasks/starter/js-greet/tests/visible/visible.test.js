const test = require("node:test");
const assert = require("node:assert");
const { greet } = require("./solution.js");

test("example 1", () => {
  assert.strictEqual(greet("Ann"), "Hello, Ann!");
});

test("example 2", () => {
  assert.strictEqual(greet("Bob"), "Hello, Bob!");
});
