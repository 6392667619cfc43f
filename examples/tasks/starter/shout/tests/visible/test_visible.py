from solution import shout


def test_example_1():
    assert shout("hello") == "hello!"


def test_example_2():
    assert shout("Go") == "Go!"
