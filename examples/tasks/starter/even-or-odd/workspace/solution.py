def even_or_odd(n):
    pass
