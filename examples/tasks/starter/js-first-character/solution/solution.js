module.exports = { firstCharacter };

function firstCharacter(text) {
  return text[0];
}
