def count_bigger(numbers, limit):
    return sum(1 for n in numbers if n > limit)
