from solution import big_or_small


def test_exactly_100():
    assert big_or_small(100) == "small"


def test_just_above():
    assert big_or_small(101) == "big"


def test_zero():
    assert big_or_small(0) == "small"


def test_negative():
    assert big_or_small(-200) == "small"
