from solution import count_spaces


def test_example_1():
    assert count_spaces("a b c") == 2


def test_example_2():
    assert count_spaces("hello") == 0
