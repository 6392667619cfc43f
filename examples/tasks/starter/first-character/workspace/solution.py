def first_character(text):
    pass
