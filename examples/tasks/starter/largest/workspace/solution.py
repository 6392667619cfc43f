def largest(numbers):
    pass
