from solution import count_vowels


def test_empty():
    assert count_vowels("") == 0


def test_all_vowels():
    assert count_vowels("aeiou") == 5


def test_repeated():
    assert count_vowels("banana") == 3


def test_spaces():
    assert count_vowels("a big one") == 4
