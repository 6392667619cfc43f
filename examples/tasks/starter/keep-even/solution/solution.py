def keep_even(numbers):
    return [n for n in numbers if n % 2 == 0]
