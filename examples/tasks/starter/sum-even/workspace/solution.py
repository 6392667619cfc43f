def sum_even(numbers):
    pass
