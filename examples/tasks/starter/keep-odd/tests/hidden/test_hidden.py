from solution import keep_odd


def test_empty():
    assert keep_odd([]) == []


def test_zero_is_even():
    assert keep_odd([0, 1]) == [1]


def test_all_odd():
    assert keep_odd([7, 5]) == [7, 5]


def test_order_and_repeats():
    assert keep_odd([3, 2, 1, 3]) == [3, 1, 3]
