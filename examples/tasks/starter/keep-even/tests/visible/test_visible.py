from solution import keep_even


def test_example_1():
    assert keep_even([1, 2, 3, 4]) == [2, 4]


def test_example_2():
    assert keep_even([1, 3]) == []
