def total_length(a, b):
    return len(a) + len(b)
