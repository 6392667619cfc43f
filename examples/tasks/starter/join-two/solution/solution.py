def join_two(a, b):
    return a + " " + b
