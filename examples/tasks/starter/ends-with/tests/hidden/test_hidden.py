from solution import ends_with


def test_whole():
    assert ends_with("abc", "abc") is True


def test_longer_suffix():
    assert ends_with("bc", "abc") is False


def test_empty_suffix():
    assert ends_with("abc", "") is True


def test_in_the_middle():
    assert ends_with("abc", "b") is False
