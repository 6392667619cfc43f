from solution import square


def test_example_1():
    assert square(4) == 16


def test_example_2():
    assert square(-3) == 9
