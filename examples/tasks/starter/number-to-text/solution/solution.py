def to_text(n):
    return str(n)
