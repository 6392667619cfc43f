from solution import count_bigger


def test_example_1():
    assert count_bigger([1, 5, 9], 4) == 2


def test_example_2():
    assert count_bigger([1, 2], 10) == 0
