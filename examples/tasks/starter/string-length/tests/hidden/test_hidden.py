from solution import string_length


def test_empty():
    assert string_length("") == 0


def test_spaces():
    assert string_length("a b") == 3


def test_digits():
    assert string_length("1234") == 4


def test_longer():
    assert string_length("programming") == 11
