from solution import is_cheap


def test_exactly_10():
    assert is_cheap(10) is False


def test_just_below():
    assert is_cheap(9.5) is True


def test_zero():
    assert is_cheap(0) is True


def test_large():
    assert is_cheap(1000) is False
