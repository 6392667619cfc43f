def has_key(data, key):
    return key in data
