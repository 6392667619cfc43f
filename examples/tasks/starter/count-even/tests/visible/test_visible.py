from solution import count_even


def test_example_1():
    assert count_even([1, 2, 3, 4]) == 2


def test_example_2():
    assert count_even([1, 3]) == 0
