from solution import is_greater


def test_equal_is_not_greater():
    assert is_greater(4, 4) is False


def test_negatives():
    assert is_greater(-1, -2) is True
    assert is_greater(-2, -1) is False


def test_zero():
    assert is_greater(0, -1) is True


def test_floats():
    assert is_greater(1.5, 1.25) is True
