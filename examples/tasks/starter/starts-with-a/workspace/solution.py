def starts_with_a(word):
    pass
