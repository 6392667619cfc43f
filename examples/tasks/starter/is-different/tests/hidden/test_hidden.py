from solution import is_different


def test_booleans():
    assert is_different(True, False) is True
    assert is_different(True, True) is False


def test_zeros():
    assert is_different(0, 0) is False


def test_opposite():
    assert is_different(-1, 1) is True


def test_strings():
    assert is_different("a", "b") is True
    assert is_different("a", "a") is False


def test_large():
    assert is_different(100000, 100001) is True
