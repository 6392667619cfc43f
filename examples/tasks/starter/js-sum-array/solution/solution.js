module.exports = { sumArray };

function sumArray(numbers) {
  return numbers.reduce((total, n) => total + n, 0);
}
