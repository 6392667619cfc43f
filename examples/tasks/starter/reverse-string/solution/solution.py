def reverse_string(text):
    return text[::-1]
