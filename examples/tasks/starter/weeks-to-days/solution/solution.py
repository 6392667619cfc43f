def weeks_to_days(weeks):
    return weeks * 7
