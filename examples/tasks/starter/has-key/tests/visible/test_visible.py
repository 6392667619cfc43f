from solution import has_key


def test_example_1():
    assert has_key({"a": 1}, "a") is True


def test_example_2():
    assert has_key({"a": 1}, "b") is False
