from solution import number_of_digits


def test_example_1():
    assert number_of_digits(123) == 3


def test_example_2():
    assert number_of_digits(7) == 1
