from solution import contains


def test_empty():
    assert contains([], 1) is False


def test_first():
    assert contains([9, 1], 9) is True


def test_last():
    assert contains([1, 9], 9) is True


def test_strings():
    assert contains(["a", "b"], "b") is True
    assert contains(["a", "b"], "ab") is False
