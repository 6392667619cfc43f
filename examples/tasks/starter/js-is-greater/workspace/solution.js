module.exports = { isGreater };

function isGreater(a, b) {
}
