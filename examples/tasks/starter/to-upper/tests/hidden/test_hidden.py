from solution import to_upper


def test_empty():
    assert to_upper("") == ""


def test_already_upper():
    assert to_upper("OK") == "OK"


def test_digits():
    assert to_upper("a1b2") == "A1B2"


def test_spaces():
    assert to_upper("two words") == "TWO WORDS"
