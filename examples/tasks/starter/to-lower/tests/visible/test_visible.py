from solution import to_lower


def test_example_1():
    assert to_lower("HELLO") == "hello"


def test_example_2():
    assert to_lower("aBc") == "abc"
