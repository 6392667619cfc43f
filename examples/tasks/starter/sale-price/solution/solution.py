def sale_price(price):
    return price * 0.5
