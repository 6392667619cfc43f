def is_positive(n):
    pass
