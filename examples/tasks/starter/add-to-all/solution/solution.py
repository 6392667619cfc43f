def add_to_all(numbers, k):
    return [n + k for n in numbers]
