module.exports = { isGreater };

function isGreater(a, b) {
  return a > b;
}
