def count_positive(numbers):
    return sum(1 for n in numbers if n > 0)
