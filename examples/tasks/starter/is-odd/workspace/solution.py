def is_odd(n):
    pass
