from solution import starts_with


def test_whole():
    assert starts_with("abc", "abc") is True


def test_longer_prefix():
    assert starts_with("ab", "abc") is False


def test_empty_prefix():
    assert starts_with("abc", "") is True


def test_in_the_middle():
    assert starts_with("abc", "b") is False
