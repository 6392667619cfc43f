def distance(a, b):
    pass
