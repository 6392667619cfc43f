def feet_to_inches(feet):
    pass
