from solution import ends_with


def test_example_1():
    assert ends_with("hello", "lo") is True


def test_example_2():
    assert ends_with("hello", "he") is False
