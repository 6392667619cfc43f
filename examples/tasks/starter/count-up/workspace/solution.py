def count_up(n):
    pass
