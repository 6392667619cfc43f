from solution import checked_divide


def test_example_1():
    assert checked_divide(10, 2) == 5


def test_example_2():
    assert checked_divide(7, 2) == 3.5
