def has_key(data, key):
    pass
