def check_age(age):
    pass
