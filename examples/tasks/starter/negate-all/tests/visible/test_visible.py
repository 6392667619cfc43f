from solution import negate_all


def test_example_1():
    assert negate_all([1, -2, 3]) == [-1, 2, -3]


def test_example_2():
    assert negate_all([5]) == [-5]
