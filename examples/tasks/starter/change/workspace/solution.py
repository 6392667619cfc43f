def change(paid, price):
    pass
