def remove_spaces(text):
    return text.replace(" ", "")
