def positive_or_zero(n):
    pass
