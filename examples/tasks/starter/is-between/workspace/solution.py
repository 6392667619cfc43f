def is_between(n, low, high):
    pass
