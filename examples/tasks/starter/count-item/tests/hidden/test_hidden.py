from solution import count_item


def test_empty():
    assert count_item([], 1) == 0


def test_all_equal():
    assert count_item([5, 5, 5], 5) == 3


def test_one_match():
    assert count_item([1, 2, 3], 3) == 1


def test_strings():
    assert count_item(["x", "y", "x"], "x") == 2
