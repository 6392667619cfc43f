from solution import divide


def test_zero_dividend():
    assert divide(0, 5) == 0


def test_negative():
    assert divide(-9, 3) == -3


def test_by_one():
    assert divide(8, 1) == 8


def test_fraction():
    assert divide(1, 4) == 0.25
