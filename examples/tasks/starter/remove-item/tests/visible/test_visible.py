from solution import remove_all


def test_example_1():
    assert remove_all([1, 2, 1, 3], 1) == [2, 3]


def test_example_2():
    assert remove_all([4, 5], 9) == [4, 5]
