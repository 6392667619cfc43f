from solution import repeat_item


def test_zero_times():
    assert repeat_item(5, 0) == []


def test_once():
    assert repeat_item(5, 1) == [5]


def test_zeros():
    assert repeat_item(0, 4) == [0, 0, 0, 0]


def test_strings():
    assert repeat_item("ab", 3) == ["ab", "ab", "ab"]
