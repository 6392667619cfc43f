def negate_all(numbers):
    pass
