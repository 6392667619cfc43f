def first_character(text):
    return text[0]
