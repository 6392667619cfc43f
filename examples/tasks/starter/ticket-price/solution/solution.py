def ticket_price(age):
    return 5 if age < 12 else 10
