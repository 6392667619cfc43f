def negate(n):
    return -n
