from solution import join_two


def test_example_1():
    assert join_two("hello", "world") == "hello world"


def test_example_2():
    assert join_two("a", "b") == "a b"
