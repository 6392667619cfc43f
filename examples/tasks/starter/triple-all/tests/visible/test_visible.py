from solution import triple_all


def test_example_1():
    assert triple_all([1, 2, 3]) == [3, 6, 9]


def test_example_2():
    assert triple_all([5]) == [15]
