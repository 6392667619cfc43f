from solution import add_one


def test_empty():
    assert add_one([]) == []


def test_zeros():
    assert add_one([0, 0]) == [1, 1]


def test_negatives():
    assert add_one([-1, -2]) == [0, -1]


def test_keeps_order():
    assert add_one([3, 1, 2]) == [4, 2, 3]
