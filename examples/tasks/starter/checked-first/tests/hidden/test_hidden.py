from solution import checked_first


def test_empty_raises():
    try:
        checked_first([])
    except ValueError:
        pass
    else:
        raise AssertionError("expected ValueError")


def test_zero_first():
    assert checked_first([0, 5]) == 0


def test_none_first():
    assert checked_first([None, 1]) is None


def test_longer():
    assert checked_first([8, 7, 6, 5]) == 8
