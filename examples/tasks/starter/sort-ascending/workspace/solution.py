def sort_numbers(numbers):
    pass
