def reverse_list(items):
    pass
