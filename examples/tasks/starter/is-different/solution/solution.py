def is_different(a, b):
    return a != b
