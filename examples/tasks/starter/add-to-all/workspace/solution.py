def add_to_all(numbers, k):
    pass
