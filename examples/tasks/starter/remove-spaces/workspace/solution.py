def remove_spaces(text):
    pass
