module.exports = { last };

function last(items) {
  return items[items.length - 1];
}
