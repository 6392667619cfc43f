def is_vowel(letter):
    return letter in ("a", "e", "i", "o", "u")
