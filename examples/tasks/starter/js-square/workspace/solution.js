module.exports = { square };

function square(n) {
}
