from solution import sum_even


def test_example_1():
    assert sum_even([1, 2, 3, 4]) == 6


def test_example_2():
    assert sum_even([10, 11]) == 10
