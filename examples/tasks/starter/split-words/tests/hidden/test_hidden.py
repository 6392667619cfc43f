from solution import split_words


def test_two():
    assert split_words("a b") == ["a", "b"]


def test_repeated():
    assert split_words("go go") == ["go", "go"]


def test_digits():
    assert split_words("1 2 3") == ["1", "2", "3"]


def test_keeps_case():
    assert split_words("The Sun") == ["The", "Sun"]
