def increment(n):
    pass
