def get_value(data, key):
    return data[key]
