def is_divisible(a, b):
    pass
