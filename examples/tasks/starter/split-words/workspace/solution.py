def split_words(text):
    pass
