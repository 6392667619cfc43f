module.exports = { stringLength };

function stringLength(text) {
}
