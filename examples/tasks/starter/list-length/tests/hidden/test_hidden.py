from solution import list_length


def test_empty():
    assert list_length([]) == 0


def test_repeated():
    assert list_length([5, 5, 5, 5]) == 4


def test_nested():
    assert list_length([[1, 2], [3]]) == 2


def test_longer():
    assert list_length([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]) == 10
