def minutes_to_seconds(minutes):
    pass
