def drop_first(items):
    return items[1:]
