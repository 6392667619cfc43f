from solution import absolute_value


def test_example_1():
    assert absolute_value(-5) == 5


def test_example_2():
    assert absolute_value(3) == 3
