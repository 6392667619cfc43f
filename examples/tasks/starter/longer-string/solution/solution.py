def longer(a, b):
    return a if len(a) > len(b) else b
