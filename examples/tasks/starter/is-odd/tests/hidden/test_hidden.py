from solution import is_odd


def test_zero_is_not_odd():
    assert is_odd(0) is False


def test_small_numbers():
    assert is_odd(1) is True
    assert is_odd(2) is False


def test_large_numbers():
    assert is_odd(1000001) is True
    assert is_odd(1000000) is False


def test_negative_odd():
    assert is_odd(-5) is True


def test_negative_even():
    assert is_odd(-6) is False
