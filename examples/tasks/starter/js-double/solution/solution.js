module.exports = { double };

function double(n) {
  return n * 2;
}
