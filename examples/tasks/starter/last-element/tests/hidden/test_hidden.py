from solution import last


def test_one_item():
    assert last([9]) == 9


def test_zero_last():
    assert last([5, 0]) == 0


def test_repeated():
    assert last([1, 2, 1]) == 1


def test_longer():
    assert last([8, 7, 6, 5, 4]) == 4
