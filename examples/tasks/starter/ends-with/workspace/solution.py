def ends_with(text, suffix):
    pass
