def repeat_string(text, n):
    pass
