from solution import negate


def test_example_1():
    assert negate(5) == -5


def test_example_2():
    assert negate(-3) == 3
