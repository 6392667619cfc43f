def smallest(numbers):
    return min(numbers)
