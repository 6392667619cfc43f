from solution import product


def test_example_1():
    assert product([2, 3, 4]) == 24


def test_example_2():
    assert product([5]) == 5
