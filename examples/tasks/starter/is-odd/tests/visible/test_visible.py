from solution import is_odd


def test_example_1():
    assert is_odd(3) is True


def test_example_2():
    assert is_odd(10) is False
