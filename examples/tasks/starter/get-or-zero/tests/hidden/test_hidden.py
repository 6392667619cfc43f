from solution import get_or_zero


def test_empty():
    assert get_or_zero({}, "a") == 0


def test_zero_value():
    assert get_or_zero({"a": 0}, "a") == 0


def test_second_key():
    assert get_or_zero({"x": 5, "y": 6}, "y") == 6


def test_case_matters():
    assert get_or_zero({"a": 3}, "A") == 0
