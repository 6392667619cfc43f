def starts_with(text, prefix):
    pass
