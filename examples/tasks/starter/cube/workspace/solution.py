def cube(n):
    pass
