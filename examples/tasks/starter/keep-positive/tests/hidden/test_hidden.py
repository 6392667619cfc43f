from solution import keep_positive


def test_empty():
    assert keep_positive([]) == []


def test_zero_is_left_out():
    assert keep_positive([0, 5]) == [5]


def test_all_positive():
    assert keep_positive([1, 2]) == [1, 2]


def test_order_and_repeats():
    assert keep_positive([3, 1, -1, 3]) == [3, 1, 3]
