def last(items):
    pass
