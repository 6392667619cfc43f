def is_sorted(numbers):
    return numbers == sorted(numbers)
