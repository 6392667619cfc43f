from solution import reverse_words


def test_empty():
    assert reverse_words([]) == []


def test_one_letter():
    assert reverse_words(["a", "b"]) == ["a", "b"]


def test_keeps_order():
    assert reverse_words(["xy", "ab"]) == ["yx", "ba"]


def test_empty_string():
    assert reverse_words([""]) == [""]
