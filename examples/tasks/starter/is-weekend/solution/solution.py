def is_weekend(day):
    return day in ("Saturday", "Sunday")
