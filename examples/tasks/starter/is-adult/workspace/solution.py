def is_adult(age):
    pass
