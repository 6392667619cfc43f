def either(a, b):
    pass
