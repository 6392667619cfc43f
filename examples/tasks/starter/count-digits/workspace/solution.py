def count_digits(text):
    pass
