from solution import add_tip


def test_no_tip():
    assert add_tip(30, 0) == 30


def test_zeros():
    assert add_tip(0, 0) == 0


def test_large():
    assert add_tip(1000, 150) == 1150


def test_floats():
    assert add_tip(1.5, 0.25) == 1.75
