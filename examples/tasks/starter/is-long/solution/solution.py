def is_long(text):
    return len(text) > 10
