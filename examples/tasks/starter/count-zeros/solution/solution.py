def count_zeros(numbers):
    return numbers.count(0)
