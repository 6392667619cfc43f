def kilometers_to_meters(kilometers):
    pass
