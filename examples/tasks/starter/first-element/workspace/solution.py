def first(items):
    pass
