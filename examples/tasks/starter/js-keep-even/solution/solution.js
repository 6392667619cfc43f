module.exports = { keepEven };

function keepEven(numbers) {
  return numbers.filter((n) => n % 2 === 0);
}
