def at_most(n, limit):
    pass
