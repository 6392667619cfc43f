def either(a, b):
    return a or b
