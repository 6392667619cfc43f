from solution import check_age


def test_zero():
    assert check_age(0) == 0


def test_negative_raises():
    try:
        check_age(-1)
    except ValueError:
        pass
    else:
        raise AssertionError("expected ValueError")


def test_very_negative_raises():
    try:
        check_age(-100)
    except ValueError:
        pass
    else:
        raise AssertionError("expected ValueError")


def test_old():
    assert check_age(99) == 99
