def last_character(text):
    pass
