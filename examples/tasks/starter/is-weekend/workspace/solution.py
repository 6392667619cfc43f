def is_weekend(day):
    pass
