def keep_odd(numbers):
    pass
