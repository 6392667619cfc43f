def sum_of_digits(n):
    pass
