def count_item(items, target):
    pass
