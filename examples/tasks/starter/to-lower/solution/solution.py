def to_lower(text):
    return text.lower()
