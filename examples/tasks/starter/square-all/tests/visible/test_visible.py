from solution import square_all


def test_example_1():
    assert square_all([1, 2, 3]) == [1, 4, 9]


def test_example_2():
    assert square_all([5]) == [25]
