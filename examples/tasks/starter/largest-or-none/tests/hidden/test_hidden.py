from solution import largest_or_none


def test_one_number():
    assert largest_or_none([0]) == 0


def test_first_is_largest():
    assert largest_or_none([9, 2, 3]) == 9


def test_negatives():
    assert largest_or_none([-5, -2, -9]) == -2


def test_repeated():
    assert largest_or_none([4, 4]) == 4
