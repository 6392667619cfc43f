def append_item(items, item):
    return items + [item]
