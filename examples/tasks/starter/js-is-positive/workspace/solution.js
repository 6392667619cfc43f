module.exports = { isPositive };

function isPositive(n) {
}
