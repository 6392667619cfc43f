from solution import distance


def test_example_1():
    assert distance(3, 10) == 7


def test_example_2():
    assert distance(10, 3) == 7
