def in_brackets(text):
    pass
