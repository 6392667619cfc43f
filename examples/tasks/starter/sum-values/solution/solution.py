def sum_values(data):
    return sum(data.values())
