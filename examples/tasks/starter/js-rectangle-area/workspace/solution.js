module.exports = { rectangleArea };

function rectangleArea(width, height) {
}
