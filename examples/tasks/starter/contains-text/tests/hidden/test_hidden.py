from solution import contains_text


def test_at_start():
    assert contains_text("hello", "he") is True


def test_at_end():
    assert contains_text("hello", "lo") is True


def test_whole():
    assert contains_text("abc", "abc") is True


def test_longer_part():
    assert contains_text("ab", "abc") is False


def test_case_matters():
    assert contains_text("Hello", "hello") is False
