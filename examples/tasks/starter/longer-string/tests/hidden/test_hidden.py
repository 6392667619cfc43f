from solution import longer


def test_empty():
    assert longer("", "a") == "a"


def test_not_alphabetical():
    assert longer("z", "aa") == "aa"


def test_spaces():
    assert longer("   ", "ab") == "   "


def test_longer():
    assert longer("abcdefgh", "abcdefg") == "abcdefgh"
