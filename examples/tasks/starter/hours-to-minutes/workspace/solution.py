def hours_to_minutes(hours):
    pass
