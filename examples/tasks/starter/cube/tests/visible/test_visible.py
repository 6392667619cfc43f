from solution import cube


def test_example_1():
    assert cube(3) == 27


def test_example_2():
    assert cube(-2) == -8
