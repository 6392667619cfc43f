def get_or_zero(data, key):
    return data.get(key, 0)
