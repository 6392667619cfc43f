from solution import repeat_string


def test_example_1():
    assert repeat_string("ab", 3) == "ababab"


def test_example_2():
    assert repeat_string("x", 1) == "x"
