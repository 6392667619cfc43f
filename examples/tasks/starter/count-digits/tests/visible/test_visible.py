from solution import count_digits


def test_example_1():
    assert count_digits("a1b2") == 2


def test_example_2():
    assert count_digits("abc") == 0
