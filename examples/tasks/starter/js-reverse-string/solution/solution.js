module.exports = { reverseString };

function reverseString(text) {
  return text.split("").reverse().join("");
}
