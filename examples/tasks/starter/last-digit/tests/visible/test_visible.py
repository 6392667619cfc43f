from solution import last_digit


def test_example_1():
    assert last_digit(123) == 3


def test_example_2():
    assert last_digit(7) == 7
