module.exports = { add };

function add(a, b) {
}
