module.exports = { toUpper };

function toUpper(text) {
  return text.toUpperCase();
}
