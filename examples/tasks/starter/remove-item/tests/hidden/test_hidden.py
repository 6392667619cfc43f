from solution import remove_all


def test_empty():
    assert remove_all([], 1) == []


def test_all_removed():
    assert remove_all([7, 7], 7) == []


def test_strings():
    assert remove_all(["a", "b", "a"], "a") == ["b"]


def test_keeps_order():
    assert remove_all([3, 2, 1, 2], 2) == [3, 1]
