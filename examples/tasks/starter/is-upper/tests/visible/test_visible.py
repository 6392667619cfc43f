from solution import is_upper


def test_example_1():
    assert is_upper("ABC") is True


def test_example_2():
    assert is_upper("AbC") is False
