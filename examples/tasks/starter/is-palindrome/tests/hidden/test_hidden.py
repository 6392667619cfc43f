from solution import is_palindrome


def test_empty():
    assert is_palindrome("") is True


def test_one_letter():
    assert is_palindrome("a") is True


def test_two_letters():
    assert is_palindrome("ab") is False
    assert is_palindrome("aa") is True


def test_even_length():
    assert is_palindrome("abba") is True


def test_case_matters():
    assert is_palindrome("Level") is False
