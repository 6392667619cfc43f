def third(items):
    pass
