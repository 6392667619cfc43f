def safe_divide(a, b):
    return None if b == 0 else a / b
