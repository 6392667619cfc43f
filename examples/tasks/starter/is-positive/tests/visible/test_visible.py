from solution import is_positive


def test_example_1():
    assert is_positive(5) is True


def test_example_2():
    assert is_positive(-2) is False
