module.exports = { isDivisible };

function isDivisible(a, b) {
}
