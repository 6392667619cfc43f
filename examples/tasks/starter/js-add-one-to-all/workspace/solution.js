module.exports = { addOne };

function addOne(numbers) {
}
