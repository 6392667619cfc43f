from solution import double_all


def test_example_1():
    assert double_all([1, 2, 3]) == [2, 4, 6]


def test_example_2():
    assert double_all([5]) == [10]
