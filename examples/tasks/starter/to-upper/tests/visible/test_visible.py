from solution import to_upper


def test_example_1():
    assert to_upper("hello") == "HELLO"


def test_example_2():
    assert to_upper("aBc") == "ABC"
