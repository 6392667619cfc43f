from solution import remove_spaces


def test_empty():
    assert remove_spaces("") == ""


def test_only_spaces():
    assert remove_spaces("   ") == ""


def test_at_ends():
    assert remove_spaces(" hi ") == "hi"


def test_double():
    assert remove_spaces("a  b") == "ab"
