def is_upper(text):
    pass
