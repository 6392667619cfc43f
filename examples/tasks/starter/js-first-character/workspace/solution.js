module.exports = { firstCharacter };

function firstCharacter(text) {
}
