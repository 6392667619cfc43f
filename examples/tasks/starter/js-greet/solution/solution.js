module.exports = { greet };

function greet(name) {
  return "Hello, " + name + "!";
}
