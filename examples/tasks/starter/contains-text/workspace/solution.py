def contains_text(text, part):
    pass
