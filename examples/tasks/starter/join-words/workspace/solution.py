def join_words(words):
    pass
