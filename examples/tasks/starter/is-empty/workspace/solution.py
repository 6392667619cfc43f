def is_empty(items):
    pass
