from solution import is_adult


def test_exactly_18():
    assert is_adult(18) is True


def test_seventeen():
    assert is_adult(17) is False


def test_zero():
    assert is_adult(0) is False


def test_old():
    assert is_adult(99) is True
