from solution import hours_to_minutes


def test_zero():
    assert hours_to_minutes(0) == 0


def test_day():
    assert hours_to_minutes(24) == 1440


def test_half_hour():
    assert hours_to_minutes(0.5) == 30


def test_ten():
    assert hours_to_minutes(10) == 600
