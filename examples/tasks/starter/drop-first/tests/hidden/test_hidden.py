from solution import drop_first


def test_one_item():
    assert drop_first([5]) == []


def test_repeated():
    assert drop_first([1, 1, 2]) == [1, 2]


def test_zeros():
    assert drop_first([0, 0]) == [0]


def test_longer():
    assert drop_first([5, 4, 3, 2, 1]) == [4, 3, 2, 1]
