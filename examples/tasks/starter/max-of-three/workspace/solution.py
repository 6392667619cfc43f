def max_of_three(a, b, c):
    pass
