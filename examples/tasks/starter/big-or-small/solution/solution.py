def big_or_small(n):
    return "big" if n > 100 else "small"
