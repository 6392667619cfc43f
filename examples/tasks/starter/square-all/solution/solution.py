def square_all(numbers):
    return [n * n for n in numbers]
