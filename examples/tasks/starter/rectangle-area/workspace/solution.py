def rectangle_area(width, height):
    pass
