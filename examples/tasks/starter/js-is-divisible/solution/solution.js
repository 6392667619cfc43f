module.exports = { isDivisible };

function isDivisible(a, b) {
  return a % b === 0;
}
