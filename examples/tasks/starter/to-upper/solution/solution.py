def to_upper(text):
    return text.upper()
