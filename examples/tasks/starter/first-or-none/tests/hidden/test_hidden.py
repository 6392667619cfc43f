from solution import first_or_none


def test_one_item():
    assert first_or_none([9]) == 9


def test_zero_first():
    assert first_or_none([0, 5]) == 0


def test_strings():
    assert first_or_none(["a", "b"]) == "a"


def test_longer():
    assert first_or_none([8, 7, 6, 5, 4]) == 8
