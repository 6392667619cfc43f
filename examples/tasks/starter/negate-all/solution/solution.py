def negate_all(numbers):
    return [-n for n in numbers]
