def count_spaces(text):
    pass
