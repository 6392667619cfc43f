def max_of_three(a, b, c):
    return max(a, b, c)
