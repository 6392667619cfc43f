def change(paid, price):
    return paid - price
