def drop_first(items):
    pass
