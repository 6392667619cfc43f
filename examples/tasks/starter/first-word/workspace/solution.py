def first_word(text):
    pass
