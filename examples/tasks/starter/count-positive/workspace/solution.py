def count_positive(numbers):
    pass
