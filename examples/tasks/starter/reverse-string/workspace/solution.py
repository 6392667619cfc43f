def reverse_string(text):
    pass
