from solution import weeks_to_days


def test_zero():
    assert weeks_to_days(0) == 0


def test_year():
    assert weeks_to_days(52) == 364


def test_ten():
    assert weeks_to_days(10) == 70


def test_five():
    assert weeks_to_days(5) == 35
