module.exports = { average };

function average(a, b) {
}
