def both_positive(a, b):
    pass
