module.exports = { multiply };

function multiply(a, b) {
  return a * b;
}
