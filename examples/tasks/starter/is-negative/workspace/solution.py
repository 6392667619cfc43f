def is_negative(n):
    pass
