from solution import characters


def test_empty():
    assert characters("") == []


def test_repeated():
    assert characters("aab") == ["a", "a", "b"]


def test_space():
    assert characters("a b") == ["a", " ", "b"]


def test_digits():
    assert characters("12") == ["1", "2"]
