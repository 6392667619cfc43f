module.exports = { minOfTwo };

function minOfTwo(a, b) {
  return a < b ? a : b;
}
