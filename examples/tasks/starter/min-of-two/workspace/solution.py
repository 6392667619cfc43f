def min_of_two(a, b):
    pass
