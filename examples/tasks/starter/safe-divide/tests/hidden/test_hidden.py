from solution import safe_divide


def test_zero_by_zero():
    assert safe_divide(0, 0) is None


def test_zero_dividend():
    assert safe_divide(0, 5) == 0


def test_fraction():
    assert safe_divide(1, 4) == 0.25


def test_negative():
    assert safe_divide(-6, 3) == -2
