from solution import average


def test_example_1():
    assert average(4, 6) == 5


def test_example_2():
    assert average(1, 2) == 1.5
