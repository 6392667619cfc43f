def word_lengths(words):
    return [len(word) for word in words]
