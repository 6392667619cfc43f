def repeat_string(text, n):
    return text * n
