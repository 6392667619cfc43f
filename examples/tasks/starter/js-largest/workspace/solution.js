module.exports = { largest };

function largest(numbers) {
}
