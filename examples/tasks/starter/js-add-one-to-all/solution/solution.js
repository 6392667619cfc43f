module.exports = { addOne };

function addOne(numbers) {
  return numbers.map((n) => n + 1);
}
