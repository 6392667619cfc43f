module.exports = { reverseString };

function reverseString(text) {
}
