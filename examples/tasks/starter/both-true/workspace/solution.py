def both(a, b):
    pass
