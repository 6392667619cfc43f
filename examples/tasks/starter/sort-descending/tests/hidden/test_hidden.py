from solution import sort_descending


def test_empty():
    assert sort_descending([]) == []


def test_one_item():
    assert sort_descending([5]) == [5]


def test_repeated():
    assert sort_descending([2, 1, 2]) == [2, 2, 1]


def test_negatives():
    assert sort_descending([0, -1, 1]) == [1, 0, -1]
