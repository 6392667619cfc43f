def meters_to_centimeters(meters):
    return meters * 100
