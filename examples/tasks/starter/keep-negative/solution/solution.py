def keep_negative(numbers):
    return [n for n in numbers if n < 0]
