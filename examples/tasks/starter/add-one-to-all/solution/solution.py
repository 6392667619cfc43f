def add_one(numbers):
    return [n + 1 for n in numbers]
