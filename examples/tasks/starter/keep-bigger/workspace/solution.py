def keep_bigger(numbers, limit):
    pass
