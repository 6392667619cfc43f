from solution import join_words


def test_empty():
    assert join_words([]) == ""


def test_three():
    assert join_words(["a", "b", "c"]) == "a b c"


def test_repeated():
    assert join_words(["go", "go"]) == "go go"


def test_keeps_case():
    assert join_words(["The", "Sun"]) == "The Sun"
