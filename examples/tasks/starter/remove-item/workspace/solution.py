def remove_all(items, target):
    pass
