def string_length(text):
    pass
