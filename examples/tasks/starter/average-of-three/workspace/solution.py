def average_of_three(a, b, c):
    pass
