from solution import sort_numbers


def test_empty():
    assert sort_numbers([]) == []


def test_one_item():
    assert sort_numbers([5]) == [5]


def test_repeated():
    assert sort_numbers([2, 1, 2]) == [1, 2, 2]


def test_negatives():
    assert sort_numbers([0, -1, 1]) == [-1, 0, 1]
