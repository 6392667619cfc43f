def meters_to_centimeters(meters):
    pass
