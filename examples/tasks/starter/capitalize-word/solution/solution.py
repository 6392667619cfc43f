def capitalize_word(word):
    return word.capitalize()
