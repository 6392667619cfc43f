def square_perimeter(side):
    pass
