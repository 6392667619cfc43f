def mean(numbers):
    pass
