def has_two(items):
    return len(items) >= 2
