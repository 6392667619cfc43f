def days_to_hours(days):
    pass
