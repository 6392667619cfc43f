from solution import last_character


def test_example_1():
    assert last_character("hello") == "o"


def test_example_2():
    assert last_character("a") == "a"
