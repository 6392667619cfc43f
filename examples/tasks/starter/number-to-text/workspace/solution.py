def to_text(n):
    pass
