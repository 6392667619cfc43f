from solution import get_or_zero


def test_example_1():
    assert get_or_zero({"a": 1}, "a") == 1


def test_example_2():
    assert get_or_zero({"a": 1}, "b") == 0
