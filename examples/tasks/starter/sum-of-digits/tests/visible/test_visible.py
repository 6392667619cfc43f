from solution import sum_of_digits


def test_example_1():
    assert sum_of_digits(123) == 6


def test_example_2():
    assert sum_of_digits(7) == 7
