from solution import both_positive


def test_first_negative():
    assert both_positive(-1, 2) is False


def test_both_negative():
    assert both_positive(-1, -2) is False


def test_zero_is_not_positive():
    assert both_positive(0, 5) is False
    assert both_positive(5, 0) is False


def test_large():
    assert both_positive(1000, 2000) is True
