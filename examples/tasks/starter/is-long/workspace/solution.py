def is_long(text):
    pass
