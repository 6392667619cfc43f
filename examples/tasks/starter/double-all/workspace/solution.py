def double_all(numbers):
    pass
