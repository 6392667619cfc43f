def double(n):
    pass
