from solution import double_all


def test_empty():
    assert double_all([]) == []


def test_zeros():
    assert double_all([0, 0]) == [0, 0]


def test_negatives():
    assert double_all([-1, -2]) == [-2, -4]


def test_keeps_order():
    assert double_all([3, 1, 2]) == [6, 2, 4]
