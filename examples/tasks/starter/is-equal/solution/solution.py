def is_equal(a, b):
    return a == b
