def hot_or_cold(temperature):
    return "hot" if temperature > 25 else "cold"
