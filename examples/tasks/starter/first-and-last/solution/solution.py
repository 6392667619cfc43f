def first_and_last(items):
    return [items[0], items[-1]]
