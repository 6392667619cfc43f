from solution import count_vowels


def test_example_1():
    assert count_vowels("hello") == 2


def test_example_2():
    assert count_vowels("sky") == 0
