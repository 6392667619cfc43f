from solution import count_letter


def test_example_1():
    assert count_letter("banana", "a") == 3


def test_example_2():
    assert count_letter("hello", "z") == 0
