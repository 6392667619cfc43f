def make_pair(a, b):
    pass
