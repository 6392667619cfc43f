def half(n):
    pass
