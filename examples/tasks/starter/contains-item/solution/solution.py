def contains(items, target):
    return target in items
