module.exports = { rectangleArea };

function rectangleArea(width, height) {
  return width * height;
}
