def power(base, exponent):
    return base**exponent
