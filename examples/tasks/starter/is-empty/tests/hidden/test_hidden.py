from solution import is_empty


def test_empty():
    assert is_empty([]) is True


def test_one_item():
    assert is_empty([1]) is False


def test_zero_inside():
    assert is_empty([0]) is False


def test_none_inside():
    assert is_empty([None]) is False


def test_longer():
    assert is_empty([1, 2, 3, 4]) is False
