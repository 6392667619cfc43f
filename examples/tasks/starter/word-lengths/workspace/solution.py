def word_lengths(words):
    pass
