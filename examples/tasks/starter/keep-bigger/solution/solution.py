def keep_bigger(numbers, limit):
    return [n for n in numbers if n > limit]
