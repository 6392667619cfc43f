from solution import in_brackets


def test_empty():
    assert in_brackets("") == "[]"


def test_spaces():
    assert in_brackets("a b") == "[a b]"


def test_digits():
    assert in_brackets("12") == "[12]"


def test_nested():
    assert in_brackets("[x]") == "[[x]]"
