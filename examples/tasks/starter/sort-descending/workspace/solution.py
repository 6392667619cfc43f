def sort_descending(numbers):
    pass
