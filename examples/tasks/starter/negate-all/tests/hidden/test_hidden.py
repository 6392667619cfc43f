from solution import negate_all


def test_empty():
    assert negate_all([]) == []


def test_zeros():
    assert negate_all([0, 0]) == [0, 0]


def test_negatives():
    assert negate_all([-1, -2]) == [1, 2]


def test_keeps_order():
    assert negate_all([3, 1, 2]) == [-3, -1, -2]
