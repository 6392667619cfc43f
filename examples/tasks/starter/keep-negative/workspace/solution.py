def keep_negative(numbers):
    pass
