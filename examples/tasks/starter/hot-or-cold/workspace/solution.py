def hot_or_cold(temperature):
    pass
