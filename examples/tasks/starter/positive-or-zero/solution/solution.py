def positive_or_zero(n):
    return max(n, 0)
