def last_digit(n):
    pass
