from solution import is_vowel


def test_example_1():
    assert is_vowel("a") is True


def test_example_2():
    assert is_vowel("b") is False
