def first_or_none(items):
    pass
