from solution import change


def test_example_1():
    assert change(10, 7) == 3


def test_example_2():
    assert change(20, 5) == 15
