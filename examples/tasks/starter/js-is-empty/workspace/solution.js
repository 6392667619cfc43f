module.exports = { isEmpty };

function isEmpty(items) {
}
