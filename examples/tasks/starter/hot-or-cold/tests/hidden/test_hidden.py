from solution import hot_or_cold


def test_exactly_25():
    assert hot_or_cold(25) == "cold"


def test_just_above():
    assert hot_or_cold(26) == "hot"


def test_zero():
    assert hot_or_cold(0) == "cold"


def test_negative():
    assert hot_or_cold(-10) == "cold"
