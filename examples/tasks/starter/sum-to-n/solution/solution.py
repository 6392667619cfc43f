def sum_to(n):
    return n * (n + 1) // 2
