module.exports = { maxOfTwo };

function maxOfTwo(a, b) {
  return a > b ? a : b;
}
