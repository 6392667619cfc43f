def concatenate(a, b):
    pass
