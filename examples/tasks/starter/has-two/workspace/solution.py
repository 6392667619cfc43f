def has_two(items):
    pass
