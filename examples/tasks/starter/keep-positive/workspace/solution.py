def keep_positive(numbers):
    pass
