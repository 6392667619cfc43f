def keep_odd(numbers):
    return [n for n in numbers if n % 2 == 1]
