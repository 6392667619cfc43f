def last_character(text):
    return text[-1]
