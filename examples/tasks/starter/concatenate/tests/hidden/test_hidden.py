from solution import concatenate


def test_first_empty():
    assert concatenate([], [1]) == [1]


def test_second_empty():
    assert concatenate([1], []) == [1]


def test_both_empty():
    assert concatenate([], []) == []


def test_keeps_order():
    assert concatenate([3, 1], [2, 0]) == [3, 1, 2, 0]
