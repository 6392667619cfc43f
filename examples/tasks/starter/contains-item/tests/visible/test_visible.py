from solution import contains


def test_example_1():
    assert contains([1, 2, 3], 2) is True


def test_example_2():
    assert contains([1, 2, 3], 5) is False
