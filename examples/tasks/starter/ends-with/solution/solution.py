def ends_with(text, suffix):
    return text.endswith(suffix)
