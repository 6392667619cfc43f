def make_pair(a, b):
    return [a, b]
