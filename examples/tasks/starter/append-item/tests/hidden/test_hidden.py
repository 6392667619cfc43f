from solution import append_item


def test_repeated():
    assert append_item([1, 1], 1) == [1, 1, 1]


def test_strings():
    assert append_item(["x"], "y") == ["x", "y"]


def test_zero():
    assert append_item([5], 0) == [5, 0]


def test_longer():
    assert append_item([1, 2, 3, 4], 5) == [1, 2, 3, 4, 5]
