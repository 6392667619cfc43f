def keep_long(words, n):
    return [word for word in words if len(word) > n]
