from solution import triple_all


def test_empty():
    assert triple_all([]) == []


def test_zeros():
    assert triple_all([0, 0]) == [0, 0]


def test_negatives():
    assert triple_all([-1, -2]) == [-3, -6]


def test_keeps_order():
    assert triple_all([3, 1, 2]) == [9, 3, 6]
