def is_divisible(a, b):
    return a % b == 0
