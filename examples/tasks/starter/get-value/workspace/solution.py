def get_value(data, key):
    pass
