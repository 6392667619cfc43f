from solution import feet_to_inches


def test_zero():
    assert feet_to_inches(0) == 0


def test_half():
    assert feet_to_inches(0.5) == 6


def test_ten():
    assert feet_to_inches(10) == 120


def test_six():
    assert feet_to_inches(6) == 72
