from solution import cube


def test_zero():
    assert cube(0) == 0


def test_one():
    assert cube(1) == 1


def test_large():
    assert cube(10) == 1000


def test_floats():
    assert cube(0.5) == 0.125
