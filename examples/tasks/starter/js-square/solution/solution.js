module.exports = { square };

function square(n) {
  return n * n;
}
