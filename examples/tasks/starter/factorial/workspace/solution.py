def factorial(n):
    pass
