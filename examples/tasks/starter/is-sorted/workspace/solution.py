def is_sorted(numbers):
    pass
