def power(base, exponent):
    pass
