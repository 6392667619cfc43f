def average_of_three(a, b, c):
    return (a + b + c) / 3
