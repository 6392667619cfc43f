def dict_size(data):
    return len(data)
