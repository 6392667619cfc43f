def check_age(age):
    if age < 0:
        raise ValueError("age must not be negative")
    return age
