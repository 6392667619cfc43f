def repeat_item(item, n):
    pass
