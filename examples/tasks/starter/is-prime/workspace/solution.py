def is_prime(n):
    pass
