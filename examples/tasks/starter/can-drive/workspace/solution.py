def can_drive(age):
    pass
