def sum_positive(numbers):
    pass
