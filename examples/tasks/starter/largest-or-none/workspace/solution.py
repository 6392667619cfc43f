def largest_or_none(numbers):
    pass
