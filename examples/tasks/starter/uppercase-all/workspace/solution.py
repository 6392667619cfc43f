def upper_all(words):
    pass
