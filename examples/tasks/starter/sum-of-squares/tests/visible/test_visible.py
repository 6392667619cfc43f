from solution import sum_of_squares


def test_example_1():
    assert sum_of_squares([1, 2, 3]) == 14


def test_example_2():
    assert sum_of_squares([4]) == 16
