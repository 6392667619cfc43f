module.exports = { largest };

function largest(numbers) {
  return Math.max(...numbers);
}
