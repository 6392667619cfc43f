def checked_first(items):
    if not items:
        raise ValueError("the list is empty")
    return items[0]
