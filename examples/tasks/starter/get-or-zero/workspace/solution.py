def get_or_zero(data, key):
    pass
