module.exports = { average };

function average(a, b) {
  return (a + b) / 2;
}
