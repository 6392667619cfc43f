from solution import is_upper


def test_one_upper():
    assert is_upper("A") is True


def test_one_lower():
    assert is_upper("a") is False


def test_all_lower():
    assert is_upper("abc") is False


def test_last_lower():
    assert is_upper("ABCd") is False
