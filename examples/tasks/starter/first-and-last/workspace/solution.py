def first_and_last(items):
    pass
