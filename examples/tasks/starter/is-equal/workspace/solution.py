def is_equal(a, b):
    pass
