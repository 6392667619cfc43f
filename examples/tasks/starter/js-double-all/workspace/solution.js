module.exports = { doubleAll };

function doubleAll(numbers) {
}
