def starts_with(text, prefix):
    return text.startswith(prefix)
