from solution import get_value


def test_example_1():
    assert get_value({"a": 1}, "a") == 1


def test_example_2():
    assert get_value({"x": 5, "y": 6}, "y") == 6
