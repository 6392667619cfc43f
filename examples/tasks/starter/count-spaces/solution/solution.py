def count_spaces(text):
    return text.count(" ")
