from solution import is_negative


def test_zero_is_not_negative():
    assert is_negative(0) is False


def test_one():
    assert is_negative(1) is False


def test_minus_one():
    assert is_negative(-1) is True


def test_floats():
    assert is_negative(-0.25) is True
    assert is_negative(0.25) is False
