from solution import minutes_to_seconds


def test_zero():
    assert minutes_to_seconds(0) == 0


def test_hour():
    assert minutes_to_seconds(60) == 3600


def test_half_minute():
    assert minutes_to_seconds(0.5) == 30


def test_seven():
    assert minutes_to_seconds(7) == 420
