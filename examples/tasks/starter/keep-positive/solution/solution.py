def keep_positive(numbers):
    return [n for n in numbers if n > 0]
