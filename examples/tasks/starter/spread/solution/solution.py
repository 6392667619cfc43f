def spread(numbers):
    return max(numbers) - min(numbers)
