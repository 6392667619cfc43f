def triple_all(numbers):
    return [n * 3 for n in numbers]
