def third(items):
    return items[2]
