def spread(numbers):
    pass
