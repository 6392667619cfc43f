def days_to_hours(days):
    return days * 24
