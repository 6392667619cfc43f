def sum_list(numbers):
    return sum(numbers)
