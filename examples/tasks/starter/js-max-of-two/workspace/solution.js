module.exports = { maxOfTwo };

function maxOfTwo(a, b) {
}
