def reverse_list(items):
    return items[::-1]
