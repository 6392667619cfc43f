def clamp(n, low, high):
    pass
