def triple_all(numbers):
    pass
