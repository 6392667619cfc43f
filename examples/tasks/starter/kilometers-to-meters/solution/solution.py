def kilometers_to_meters(kilometers):
    return kilometers * 1000
