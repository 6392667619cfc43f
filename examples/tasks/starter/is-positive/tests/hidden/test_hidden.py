from solution import is_positive


def test_zero_is_not_positive():
    assert is_positive(0) is False


def test_one():
    assert is_positive(1) is True


def test_minus_one():
    assert is_positive(-1) is False


def test_floats():
    assert is_positive(0.5) is True
    assert is_positive(-0.5) is False
