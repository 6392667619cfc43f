def big_or_small(n):
    pass
