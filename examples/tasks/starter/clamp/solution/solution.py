def clamp(n, low, high):
    return max(low, min(n, high))
