module.exports = { stringLength };

function stringLength(text) {
  return text.length;
}
