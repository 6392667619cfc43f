def count_item(items, target):
    return items.count(target)
