def to_lower(text):
    pass
