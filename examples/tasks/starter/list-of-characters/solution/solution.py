def characters(text):
    return list(text)
