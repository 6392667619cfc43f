def characters(text):
    pass
