from solution import keep_long


def test_empty():
    assert keep_long([], 2) == []


def test_exact_length_is_left_out():
    assert keep_long(["abc", "abcd"], 3) == ["abcd"]


def test_all():
    assert keep_long(["aa", "bb"], 0) == ["aa", "bb"]


def test_keeps_order():
    assert keep_long(["ccc", "a", "bbb"], 2) == ["ccc", "bbb"]
