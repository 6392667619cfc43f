def celsius_to_fahrenheit(celsius):
    pass
