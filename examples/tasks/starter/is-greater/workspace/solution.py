def is_greater(a, b):
    pass
