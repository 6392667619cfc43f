def negate(n):
    pass
