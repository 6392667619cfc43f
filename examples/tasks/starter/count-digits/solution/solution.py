def count_digits(text):
    return sum(1 for char in text if char.isdigit())
