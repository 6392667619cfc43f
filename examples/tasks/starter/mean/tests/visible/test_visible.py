from solution import mean


def test_example_1():
    assert mean([1, 2, 3]) == 2


def test_example_2():
    assert mean([4, 5]) == 4.5
