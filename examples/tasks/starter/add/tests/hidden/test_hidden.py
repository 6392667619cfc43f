from solution import add


def test_zeros():
    assert add(0, 0) == 0


def test_negatives():
    assert add(-2, -3) == -5


def test_large():
    assert add(1000000, 1) == 1000001


def test_floats():
    assert add(0.5, 0.25) == 0.75
