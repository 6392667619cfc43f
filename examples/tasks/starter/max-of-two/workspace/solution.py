def max_of_two(a, b):
    pass
