def absolute_value(n):
    pass
