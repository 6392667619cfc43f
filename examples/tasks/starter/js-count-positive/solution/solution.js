module.exports = { countPositive };

function countPositive(numbers) {
  return numbers.filter((n) => n > 0).length;
}
