module.exports = { greet };

function greet(name) {
}
