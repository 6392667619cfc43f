def is_different(a, b):
    pass
