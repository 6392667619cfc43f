def increment(n):
    return n + 1
