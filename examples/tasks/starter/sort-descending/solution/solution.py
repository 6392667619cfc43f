def sort_descending(numbers):
    return sorted(numbers, reverse=True)
