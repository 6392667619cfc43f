module.exports = { countPositive };

function countPositive(numbers) {
}
