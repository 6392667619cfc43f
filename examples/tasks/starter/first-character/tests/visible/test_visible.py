from solution import first_character


def test_example_1():
    assert first_character("hello") == "h"


def test_example_2():
    assert first_character("a") == "a"
