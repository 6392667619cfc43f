module.exports = { evenOrOdd };

function evenOrOdd(n) {
  return n % 2 === 0 ? "even" : "odd";
}
