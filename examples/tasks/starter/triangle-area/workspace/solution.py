def triangle_area(base, height):
    pass
