def repeat_item(item, n):
    return [item] * n
