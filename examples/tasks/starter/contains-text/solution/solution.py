def contains_text(text, part):
    return part in text
