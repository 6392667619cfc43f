from solution import to_lower


def test_empty():
    assert to_lower("") == ""


def test_already_lower():
    assert to_lower("ok") == "ok"


def test_digits():
    assert to_lower("A1B2") == "a1b2"


def test_spaces():
    assert to_lower("Two Words") == "two words"
