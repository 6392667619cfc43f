def both_positive(a, b):
    return a > 0 and b > 0
