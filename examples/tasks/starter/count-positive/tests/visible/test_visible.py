from solution import count_positive


def test_example_1():
    assert count_positive([1, -2, 3]) == 2


def test_example_2():
    assert count_positive([-1]) == 0
