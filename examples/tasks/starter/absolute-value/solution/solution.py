def absolute_value(n):
    return abs(n)
