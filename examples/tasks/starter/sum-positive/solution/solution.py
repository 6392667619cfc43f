def sum_positive(numbers):
    return sum(n for n in numbers if n > 0)
