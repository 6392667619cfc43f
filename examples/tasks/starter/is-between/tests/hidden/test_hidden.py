from solution import is_between


def test_below():
    assert is_between(0, 1, 10) is False


def test_on_low():
    assert is_between(1, 1, 10) is True


def test_on_high():
    assert is_between(10, 1, 10) is True


def test_negatives():
    assert is_between(-5, -10, -1) is True
    assert is_between(0, -10, -1) is False
