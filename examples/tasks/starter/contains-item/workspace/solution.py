def contains(items, target):
    pass
