from solution import clamp


def test_example_1():
    assert clamp(15, 0, 10) == 10


def test_example_2():
    assert clamp(5, 0, 10) == 5
