from solution import add_to_all


def test_example_1():
    assert add_to_all([1, 2, 3], 10) == [11, 12, 13]


def test_example_2():
    assert add_to_all([5], 1) == [6]
