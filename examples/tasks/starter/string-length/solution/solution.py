def string_length(text):
    return len(text)
