def number_of_digits(n):
    pass
