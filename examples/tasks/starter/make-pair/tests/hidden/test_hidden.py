from solution import make_pair


def test_same():
    assert make_pair(3, 3) == [3, 3]


def test_zeros():
    assert make_pair(0, 0) == [0, 0]


def test_mixed():
    assert make_pair(1, "a") == [1, "a"]


def test_order():
    assert make_pair(9, -1) == [9, -1]
