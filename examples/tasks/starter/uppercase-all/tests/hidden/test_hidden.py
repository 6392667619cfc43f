from solution import upper_all


def test_empty():
    assert upper_all([]) == []


def test_already_upper():
    assert upper_all(["OK"]) == ["OK"]


def test_mixed():
    assert upper_all(["aBc", "x1"]) == ["ABC", "X1"]


def test_empty_string():
    assert upper_all(["", "b"]) == ["", "B"]
