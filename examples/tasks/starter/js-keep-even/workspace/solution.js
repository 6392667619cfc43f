module.exports = { keepEven };

function keepEven(numbers) {
}
