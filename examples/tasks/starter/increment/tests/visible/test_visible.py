from solution import increment


def test_example_1():
    assert increment(5) == 6


def test_example_2():
    assert increment(-1) == 0
