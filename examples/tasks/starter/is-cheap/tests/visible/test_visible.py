from solution import is_cheap


def test_example_1():
    assert is_cheap(3) is True


def test_example_2():
    assert is_cheap(25) is False
