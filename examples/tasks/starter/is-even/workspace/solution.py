def is_even(n):
    pass
