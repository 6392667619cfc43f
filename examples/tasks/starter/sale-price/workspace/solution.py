def sale_price(price):
    pass
