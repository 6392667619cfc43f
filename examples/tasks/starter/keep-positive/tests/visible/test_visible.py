from solution import keep_positive


def test_example_1():
    assert keep_positive([1, -2, 3]) == [1, 3]


def test_example_2():
    assert keep_positive([-1]) == []
