module.exports = { evenOrOdd };

function evenOrOdd(n) {
}
