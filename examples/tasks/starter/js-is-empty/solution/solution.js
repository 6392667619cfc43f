module.exports = { isEmpty };

function isEmpty(items) {
  return items.length === 0;
}
