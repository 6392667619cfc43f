from solution import is_long


def test_empty():
    assert is_long("") is False


def test_exactly_ten():
    assert is_long("abcdefghij") is False


def test_eleven():
    assert is_long("abcdefghijk") is True


def test_spaces():
    assert is_long("            ") is True
