def number_of_digits(n):
    return len(str(n))
