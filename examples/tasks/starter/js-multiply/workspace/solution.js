module.exports = { multiply };

function multiply(a, b) {
}
