module.exports = { isAdult };

function isAdult(age) {
}
