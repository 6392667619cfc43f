def smallest(numbers):
    pass
