def first_n(items, n):
    return items[:n]
