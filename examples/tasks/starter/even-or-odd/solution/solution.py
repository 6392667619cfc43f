def even_or_odd(n):
    return "even" if n % 2 == 0 else "odd"
