from solution import can_drive


def test_exactly_16():
    assert can_drive(16) is True


def test_fifteen():
    assert can_drive(15) is False


def test_zero():
    assert can_drive(0) is False


def test_old():
    assert can_drive(90) is True
