def capitalize_word(word):
    pass
