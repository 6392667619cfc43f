def checked_divide(a, b):
    pass
