def at_most(n, limit):
    return min(n, limit)
