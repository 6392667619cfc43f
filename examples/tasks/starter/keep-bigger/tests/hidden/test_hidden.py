from solution import keep_bigger


def test_empty():
    assert keep_bigger([], 0) == []


def test_equal_is_left_out():
    assert keep_bigger([3, 4], 3) == [4]


def test_negatives():
    assert keep_bigger([-5, -1], -2) == [-1]


def test_keeps_order():
    assert keep_bigger([9, 1, 8], 5) == [9, 8]
