def reverse_words(words):
    pass
