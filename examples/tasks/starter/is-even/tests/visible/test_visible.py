from solution import is_even


def test_example_1():
    assert is_even(4) is True


def test_example_2():
    assert is_even(7) is False
