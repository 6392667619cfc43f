def is_vowel(letter):
    pass
