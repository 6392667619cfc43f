def sum_of_squares(numbers):
    pass
