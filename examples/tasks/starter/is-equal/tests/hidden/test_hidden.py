from solution import is_equal


def test_zeros():
    assert is_equal(0, 0) is True


def test_opposite():
    assert is_equal(-1, 1) is False


def test_strings():
    assert is_equal("a", "a") is True
    assert is_equal("a", "b") is False


def test_large():
    assert is_equal(100000, 100001) is False
