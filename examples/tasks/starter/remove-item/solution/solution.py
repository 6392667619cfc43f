def remove_all(items, target):
    return [item for item in items if item != target]
