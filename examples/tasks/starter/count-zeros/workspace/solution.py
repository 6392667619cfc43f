def count_zeros(numbers):
    pass
