from solution import is_divisible


def test_by_one():
    assert is_divisible(7, 1) is True


def test_by_itself():
    assert is_divisible(9, 9) is True


def test_zero_is_divisible():
    assert is_divisible(0, 4) is True


def test_larger_divisor():
    assert is_divisible(3, 6) is False


def test_large_numbers():
    assert is_divisible(1000, 8) is True
    assert is_divisible(1001, 8) is False
