from solution import square_all


def test_empty():
    assert square_all([]) == []


def test_zeros():
    assert square_all([0, 0]) == [0, 0]


def test_negatives():
    assert square_all([-1, -2]) == [1, 4]


def test_keeps_order():
    assert square_all([3, 1, 2]) == [9, 1, 4]
