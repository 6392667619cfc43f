def first_or_none(items):
    return items[0] if items else None
