from solution import meters_to_centimeters


def test_zero():
    assert meters_to_centimeters(0) == 0


def test_half():
    assert meters_to_centimeters(0.5) == 50


def test_ten():
    assert meters_to_centimeters(10) == 1000


def test_large():
    assert meters_to_centimeters(321) == 32100
