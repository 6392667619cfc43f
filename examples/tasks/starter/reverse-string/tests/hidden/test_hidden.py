from solution import reverse_string


def test_empty():
    assert reverse_string("") == ""


def test_one_letter():
    assert reverse_string("a") == "a"


def test_spaces():
    assert reverse_string("a b") == "b a"


def test_palindrome():
    assert reverse_string("level") == "level"
