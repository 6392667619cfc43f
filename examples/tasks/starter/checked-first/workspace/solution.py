def checked_first(items):
    pass
