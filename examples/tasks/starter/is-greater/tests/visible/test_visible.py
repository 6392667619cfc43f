from solution import is_greater


def test_example_1():
    assert is_greater(5, 3) is True


def test_example_2():
    assert is_greater(2, 7) is False
