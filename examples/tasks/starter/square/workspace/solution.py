def square(n):
    pass
