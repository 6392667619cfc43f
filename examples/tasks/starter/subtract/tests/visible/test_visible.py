from solution import subtract


def test_example_1():
    assert subtract(9, 4) == 5


def test_example_2():
    assert subtract(3, 8) == -5
