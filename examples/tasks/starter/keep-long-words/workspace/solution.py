def keep_long(words, n):
    pass
