from solution import sum_positive


def test_example_1():
    assert sum_positive([1, -2, 3]) == 4


def test_example_2():
    assert sum_positive([5, 5]) == 10
