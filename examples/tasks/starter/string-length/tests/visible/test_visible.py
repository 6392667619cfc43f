from solution import string_length


def test_example_1():
    assert string_length("hello") == 5


def test_example_2():
    assert string_length("a") == 1
