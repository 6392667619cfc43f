def reverse_words(words):
    return [word[::-1] for word in words]
