def starts_with_a(word):
    return word[0] == "a"
