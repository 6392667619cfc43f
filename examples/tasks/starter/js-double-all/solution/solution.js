module.exports = { doubleAll };

function doubleAll(numbers) {
  return numbers.map((n) => n * 2);
}
