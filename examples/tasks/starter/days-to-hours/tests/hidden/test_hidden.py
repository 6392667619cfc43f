from solution import days_to_hours


def test_zero():
    assert days_to_hours(0) == 0


def test_week():
    assert days_to_hours(7) == 168


def test_half_day():
    assert days_to_hours(0.5) == 12


def test_ten():
    assert days_to_hours(10) == 240
