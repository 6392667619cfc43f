module.exports = { isEven };

function isEven(n) {
  return n % 2 === 0;
}
