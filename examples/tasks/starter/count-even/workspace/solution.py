def count_even(numbers):
    pass
