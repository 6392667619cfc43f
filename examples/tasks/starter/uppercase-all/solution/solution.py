def upper_all(words):
    return [word.upper() for word in words]
