def concatenate(a, b):
    return a + b
