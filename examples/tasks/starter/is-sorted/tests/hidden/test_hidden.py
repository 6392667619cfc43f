from solution import is_sorted


def test_empty():
    assert is_sorted([]) is True


def test_one_item():
    assert is_sorted([5]) is True


def test_repeated():
    assert is_sorted([1, 1, 2]) is True


def test_descending():
    assert is_sorted([3, 2, 1]) is False


def test_last_out_of_place():
    assert is_sorted([1, 2, 3, 0]) is False
