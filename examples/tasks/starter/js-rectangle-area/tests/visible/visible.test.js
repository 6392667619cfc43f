const test = require("node:test");
const assert = require("node:assert");
const { rectangleArea } = require("./solution.js");

test("example 1", () => {
  assert.strictEqual(rectangleArea(3, 4), 12);
});

test("example 2", () => {
  assert.strictEqual(rectangleArea(5, 2), 10);
});
