def has_zero(numbers):
    pass
