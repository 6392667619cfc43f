module.exports = { isEven };

function isEven(n) {
}
