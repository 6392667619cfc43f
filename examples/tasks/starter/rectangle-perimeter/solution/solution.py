def rectangle_perimeter(width, height):
    return 2 * (width + height)
