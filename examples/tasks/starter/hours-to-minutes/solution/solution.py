def hours_to_minutes(hours):
    return hours * 60
