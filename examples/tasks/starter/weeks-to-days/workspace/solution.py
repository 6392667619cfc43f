def weeks_to_days(weeks):
    pass
