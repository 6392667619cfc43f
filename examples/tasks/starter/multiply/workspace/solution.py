def multiply(a, b):
    pass
