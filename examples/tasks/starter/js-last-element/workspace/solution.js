module.exports = { last };

function last(items) {
}
