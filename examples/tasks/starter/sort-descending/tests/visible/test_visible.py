from solution import sort_descending


def test_example_1():
    assert sort_descending([3, 1, 2]) == [3, 2, 1]


def test_example_2():
    assert sort_descending([4, 5]) == [5, 4]
