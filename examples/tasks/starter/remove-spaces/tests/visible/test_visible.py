from solution import remove_spaces


def test_example_1():
    assert remove_spaces("a b c") == "abc"


def test_example_2():
    assert remove_spaces("hello") == "hello"
