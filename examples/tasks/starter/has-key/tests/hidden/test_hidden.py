from solution import has_key


def test_empty():
    assert has_key({}, "a") is False


def test_values_are_not_keys():
    assert has_key({"a": "b"}, "b") is False


def test_zero_value():
    assert has_key({"a": 0}, "a") is True


def test_number_key():
    assert has_key({1: "x"}, 1) is True
