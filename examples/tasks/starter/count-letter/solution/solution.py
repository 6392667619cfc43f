def count_letter(text, letter):
    return text.count(letter)
