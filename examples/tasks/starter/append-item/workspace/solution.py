def append_item(items, item):
    pass
