from solution import keep_negative


def test_empty():
    assert keep_negative([]) == []


def test_zero_is_left_out():
    assert keep_negative([0, -5]) == [-5]


def test_all_negative():
    assert keep_negative([-1, -2]) == [-1, -2]


def test_keeps_order():
    assert keep_negative([-3, 1, -1]) == [-3, -1]
