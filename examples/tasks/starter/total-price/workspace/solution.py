def total_price(price, quantity):
    pass
