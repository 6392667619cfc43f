from solution import is_different


def test_example_1():
    assert is_different(1, 2) is True


def test_example_2():
    assert is_different(3, 3) is False
