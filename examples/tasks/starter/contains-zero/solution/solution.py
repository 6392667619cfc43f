def has_zero(numbers):
    return 0 in numbers
