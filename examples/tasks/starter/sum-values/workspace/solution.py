def sum_values(data):
    pass
