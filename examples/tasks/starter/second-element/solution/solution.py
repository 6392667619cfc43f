def second(items):
    return items[1]
