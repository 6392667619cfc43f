module.exports = { isPositive };

function isPositive(n) {
  return n > 0;
}
