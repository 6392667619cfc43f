from solution import has_zero


def test_empty():
    assert has_zero([]) is False


def test_only_zero():
    assert has_zero([0]) is True


def test_last():
    assert has_zero([5, 6, 0]) is True


def test_ten_is_not_zero():
    assert has_zero([10, 20]) is False
