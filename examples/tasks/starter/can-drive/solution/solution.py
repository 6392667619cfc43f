def can_drive(age):
    return age >= 16
