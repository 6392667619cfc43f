from solution import keep_odd


def test_example_1():
    assert keep_odd([1, 2, 3, 4]) == [1, 3]


def test_example_2():
    assert keep_odd([2, 4]) == []
