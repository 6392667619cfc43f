def box_volume(length, width, height):
    pass
