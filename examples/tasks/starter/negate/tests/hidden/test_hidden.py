from solution import negate


def test_zero():
    assert negate(0) == 0


def test_one():
    assert negate(1) == -1


def test_large():
    assert negate(1000) == -1000


def test_floats():
    assert negate(-1.5) == 1.5
