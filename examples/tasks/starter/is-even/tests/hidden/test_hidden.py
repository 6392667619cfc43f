from solution import is_even


def test_zero_is_even():
    assert is_even(0) is True


def test_small_numbers():
    assert is_even(1) is False
    assert is_even(2) is True


def test_large_numbers():
    assert is_even(1000000) is True
    assert is_even(999999) is False


def test_negative_even():
    assert is_even(-8) is True


def test_negative_odd():
    assert is_even(-3) is False
