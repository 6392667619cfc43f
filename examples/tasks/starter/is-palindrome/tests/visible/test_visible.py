from solution import is_palindrome


def test_example_1():
    assert is_palindrome("level") is True


def test_example_2():
    assert is_palindrome("hello") is False
