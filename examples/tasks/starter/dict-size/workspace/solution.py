def dict_size(data):
    pass
