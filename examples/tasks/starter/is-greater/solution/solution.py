def is_greater(a, b):
    return a > b
