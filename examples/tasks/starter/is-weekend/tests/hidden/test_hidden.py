from solution import is_weekend


def test_sunday():
    assert is_weekend("Sunday") is True


def test_friday():
    assert is_weekend("Friday") is False


def test_tuesday():
    assert is_weekend("Tuesday") is False


def test_empty():
    assert is_weekend("") is False
