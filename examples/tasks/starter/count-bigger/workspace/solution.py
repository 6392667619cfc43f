def count_bigger(numbers, limit):
    pass
