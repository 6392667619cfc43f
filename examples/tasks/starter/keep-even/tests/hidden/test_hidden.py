from solution import keep_even


def test_empty():
    assert keep_even([]) == []


def test_zero():
    assert keep_even([0, 1]) == [0]


def test_negatives():
    assert keep_even([-2, -1]) == [-2]


def test_order_and_repeats():
    assert keep_even([4, 2, 4]) == [4, 2, 4]
