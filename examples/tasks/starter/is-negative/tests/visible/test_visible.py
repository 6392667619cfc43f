from solution import is_negative


def test_example_1():
    assert is_negative(-4) is True


def test_example_2():
    assert is_negative(6) is False
