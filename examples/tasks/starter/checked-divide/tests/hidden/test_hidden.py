from solution import checked_divide


def test_by_zero_raises():
    try:
        checked_divide(1, 0)
    except ValueError:
        pass
    else:
        raise AssertionError("expected ValueError")


def test_zero_by_zero_raises():
    try:
        checked_divide(0, 0)
    except ValueError:
        pass
    else:
        raise AssertionError("expected ValueError")


def test_zero_dividend():
    assert checked_divide(0, 5) == 0


def test_negative():
    assert checked_divide(-6, 3) == -2
