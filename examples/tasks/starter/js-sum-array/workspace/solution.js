module.exports = { sumArray };

function sumArray(numbers) {
}
