from solution import first_word


def test_two():
    assert first_word("a b") == "a"


def test_repeated():
    assert first_word("go go") == "go"


def test_keeps_case():
    assert first_word("The sun") == "The"


def test_digits():
    assert first_word("12 34") == "12"
