from solution import clamp


def test_below():
    assert clamp(-3, 0, 10) == 0


def test_on_low():
    assert clamp(0, 0, 10) == 0


def test_on_high():
    assert clamp(10, 0, 10) == 10


def test_negatives():
    assert clamp(-20, -10, -5) == -10
