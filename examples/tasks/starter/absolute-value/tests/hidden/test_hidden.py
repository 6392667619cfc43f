from solution import absolute_value


def test_zero():
    assert absolute_value(0) == 0


def test_minus_one():
    assert absolute_value(-1) == 1


def test_large():
    assert absolute_value(-100000) == 100000
    assert absolute_value(100000) == 100000


def test_floats():
    assert absolute_value(-2.5) == 2.5
