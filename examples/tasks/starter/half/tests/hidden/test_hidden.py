from solution import half


def test_zero():
    assert half(0) == 0


def test_one():
    assert half(1) == 0.5


def test_negative():
    assert half(-6) == -3


def test_large():
    assert half(1000) == 500
