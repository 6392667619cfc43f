from solution import sort_numbers


def test_example_1():
    assert sort_numbers([3, 1, 2]) == [1, 2, 3]


def test_example_2():
    assert sort_numbers([5, 4]) == [4, 5]
