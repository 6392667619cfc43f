def total_price(price, quantity):
    return price * quantity
