from solution import drop_last


def test_one_item():
    assert drop_last([5]) == []


def test_repeated():
    assert drop_last([1, 2, 2]) == [1, 2]


def test_zeros():
    assert drop_last([0, 0]) == [0]


def test_longer():
    assert drop_last([5, 4, 3, 2, 1]) == [5, 4, 3, 2]
