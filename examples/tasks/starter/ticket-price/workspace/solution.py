def ticket_price(age):
    pass
