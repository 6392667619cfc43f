def product(numbers):
    pass
