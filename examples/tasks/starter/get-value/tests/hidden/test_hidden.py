from solution import get_value


def test_zero_value():
    assert get_value({"a": 0}, "a") == 0


def test_string_value():
    assert get_value({"a": "b"}, "a") == "b"


def test_list_value():
    assert get_value({"a": [1]}, "a") == [1]


def test_number_key():
    assert get_value({1: "x"}, 1) == "x"
