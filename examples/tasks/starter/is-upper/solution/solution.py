def is_upper(text):
    return text.isupper()
