from solution import is_vowel


def test_other_vowels():
    assert is_vowel("e") is True
    assert is_vowel("i") is True
    assert is_vowel("o") is True


def test_last_vowel():
    assert is_vowel("u") is True


def test_y_is_not_a_vowel():
    assert is_vowel("y") is False


def test_last_letter():
    assert is_vowel("z") is False
