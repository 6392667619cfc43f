def first_word(text):
    return text.split()[0]
