def min_of_three(a, b, c):
    pass
