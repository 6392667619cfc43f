def both(a, b):
    return a and b
