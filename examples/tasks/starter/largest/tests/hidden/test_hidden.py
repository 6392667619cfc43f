from solution import largest


def test_first_is_largest():
    assert largest([9, 2, 3]) == 9


def test_last_is_largest():
    assert largest([1, 2, 7]) == 7


def test_negatives():
    assert largest([-5, -2, -9]) == -2


def test_repeated():
    assert largest([4, 4, 4]) == 4
