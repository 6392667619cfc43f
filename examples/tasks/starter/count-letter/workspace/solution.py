def count_letter(text, letter):
    pass
