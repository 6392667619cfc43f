def is_cheap(price):
    return price < 10
