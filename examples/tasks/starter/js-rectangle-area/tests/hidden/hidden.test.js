const test = require("node:test");
const assert = require("node:assert");
const { rectangleArea } = require("./solution.js");

test("unit", () => {
  assert.strictEqual(rectangleArea(1, 1), 1);
});

test("zero side", () => {
  assert.strictEqual(rectangleArea(0, 9), 0);
});

test("square", () => {
  assert.strictEqual(rectangleArea(6, 6), 36);
});

test("floats", () => {
  assert.strictEqual(rectangleArea(0.5, 8), 4);
});
