module.exports = { toUpper };

function toUpper(text) {
}
