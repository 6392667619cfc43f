from solution import starts_with


def test_example_1():
    assert starts_with("hello", "he") is True


def test_example_2():
    assert starts_with("hello", "lo") is False
