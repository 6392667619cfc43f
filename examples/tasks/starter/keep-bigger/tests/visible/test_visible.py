from solution import keep_bigger


def test_example_1():
    assert keep_bigger([1, 5, 9], 4) == [5, 9]


def test_example_2():
    assert keep_bigger([1, 2], 10) == []
