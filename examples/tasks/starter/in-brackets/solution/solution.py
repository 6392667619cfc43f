def in_brackets(text):
    return "[" + text + "]"
