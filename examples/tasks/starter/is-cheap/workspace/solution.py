def is_cheap(price):
    pass
