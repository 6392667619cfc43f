def sum_of_squares(numbers):
    return sum(n * n for n in numbers)
