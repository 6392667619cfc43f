def drop_last(items):
    return items[:-1]
