def to_upper(text):
    pass
