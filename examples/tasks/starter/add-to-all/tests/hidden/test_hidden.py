from solution import add_to_all


def test_empty():
    assert add_to_all([], 3) == []


def test_add_zero():
    assert add_to_all([4, 5], 0) == [4, 5]


def test_negative_k():
    assert add_to_all([1, 2], -1) == [0, 1]


def test_keeps_order():
    assert add_to_all([3, 1, 2], 2) == [5, 3, 4]
