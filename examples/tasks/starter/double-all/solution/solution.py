def double_all(numbers):
    return [n * 2 for n in numbers]
