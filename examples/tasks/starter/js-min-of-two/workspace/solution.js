module.exports = { minOfTwo };

function minOfTwo(a, b) {
}
